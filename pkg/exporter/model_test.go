package exporter_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/test/mmvimage"
)

// modelFile is a random small file. Its values say which file they are from,
// which version of it, which item and which instance.
type modelFile struct {
	index, version int
	cluster        int32
	noPrefix       bool
	metrics        []mmvimage.Metric
	indoms         map[int32][]mmvimage.Inst
	labels         []modelLabel
}

type modelLabel struct {
	flags, identity uint32
	inst            int32
}

func (f *modelFile) value(item uint32, inst int32) int64 {
	return int64(f.index+1)*1e9 + int64(f.version)*1e5 + int64(item)*100 + int64(inst+1)
}

func (f *modelFile) image() *mmvimage.Image {
	img := mmvimage.New(3).Cluster(f.cluster).Generation(uint64(f.version) + 1)
	if f.noPrefix {
		img.Flags(mmvimage.NoPrefix)
	}
	for _, serial := range slices.Sorted(maps.Keys(f.indoms)) {
		img.InDom(uint32(serial), "", "", f.indoms[serial]...)
	}
	for _, m := range f.metrics {
		m.Values = mmvimage.NoValues()
		if m.InDom == 0 {
			m.Values = append(m.Values, mmvimage.Int(f.value(m.Item, -1)))
		}
		for _, in := range f.indoms[m.InDom] {
			m.Values = append(m.Values, mmvimage.Int(f.value(m.Item, in.ID)))
		}
		img.Metric(m)
	}
	for _, l := range f.labels {
		img.Label(l.flags, l.identity, l.inst, fmt.Sprintf(`{"l%d":%d}`, l.flags, f.index))
	}
	return img
}

func (f *modelFile) full(file, metric string) string {
	if f.noPrefix {
		return "mmv." + metric
	}
	return "mmv." + strings.ReplaceAll(file, "-", "_") + "." + metric
}

var modelFiles = []string{"a", "b", "c", "a.x", "w1", "w2", "w3", "x", "control", "b-d", "b_d"}

func randomFile(r *rand.Rand, index, version int) *modelFile {
	f := &modelFile{
		index: index, version: version, cluster: []int32{0, 0, 1, 2, 2, 42, 2050}[r.IntN(7)],
		noPrefix: r.IntN(3) == 0, indoms: map[int32][]mmvimage.Inst{},
	}
	for range r.IntN(3) {
		var in []mmvimage.Inst
		for id := range int32(4) {
			if r.IntN(2) == 0 {
				in = append(in, mmvimage.Inst{ID: id, Name: fmt.Sprintf("i%d%c", id, "aaab"[r.IntN(4)])})
			}
		}
		f.indoms[[]int32{1, 2, 2049}[r.IntN(3)]] = in
	}
	for range r.IntN(5) {
		m := mmvimage.Metric{
			Name: []string{"x", "x.y", "y", "z.q", "a.x", "w1"}[r.IntN(6)], Item: uint32(r.IntN(5)),
			Type: []int32{mmvimage.I64, mmvimage.I64, mmvimage.U64}[r.IntN(3)], Sem: mmvimage.Instant,
		}
		if serials := slices.Sorted(maps.Keys(f.indoms)); len(serials) > 0 && r.IntN(3) > 0 {
			m.InDom = serials[r.IntN(len(serials))]
		}
		f.metrics = append(f.metrics, m)
	}
	if r.IntN(3) == 0 {
		for range r.IntN(4) {
			l := [...]modelLabel{
				{mmvimage.LabelCluster, uint32(f.cluster), -1},
				{mmvimage.LabelItem, uint32(r.IntN(5)), -1},
				{mmvimage.LabelInDom, 1, -1},
				{mmvimage.LabelInstances, 1, int32(r.IntN(4))},
			}[r.IntN(4)]
			f.labels = append(f.labels, l)
		}
	}
	return f
}

// modelMetric is a metric as exported.
type modelMetric struct {
	Desc   pcpwire.Desc
	Values string
}

// modelState is all that is exported.
type modelState struct {
	Metrics   map[string]modelMetric
	InDoms    map[pcpwire.InDom]string
	Labels    map[string]string
	Status    map[string]string
	Changes   pmda.Changes
	Numbers   map[string]pcpwire.Desc // of Metrics
	Labelled  map[string]pcpwire.Desc // likewise, of clusters with labels
	Instances map[pcpwire.InDom]map[int32]string
}

func (b *box) export() *modelState {
	s := &modelState{
		Metrics: map[string]modelMetric{}, InDoms: map[pcpwire.InDom]string{}, Labels: map[string]string{},
		Numbers: map[string]pcpwire.Desc{}, Labelled: map[string]pcpwire.Desc{}, Instances: map[pcpwire.InDom]map[int32]string{},
	}
	s.Changes = b.look()
	seen := map[pcpwire.PMID]string{}
	labelled := map[uint32]bool{}
	label := func(level pcpwire.LabelLevel, ident uint32, inst int32, cluster uint32) {
		if l := b.labels(level, ident, inst); l != "" {
			s.Labels[fmt.Sprintf("%d %x %d", level, ident, inst)] = l
			labelled[cluster] = true
		}
	}
	for _, n := range b.names() {
		d := b.desc(n)
		if other, ok := seen[d.PMID]; ok {
			b.Errorf("%v is %s and %s", d.PMID, other, n)
		}
		seen[d.PMID] = n
		if got := b.namesOf(d.PMID); len(got) != 1 || got[0] != n {
			b.Errorf("%v is called %q, not %s", d.PMID, got, n)
		}
		if _, ok := s.Metrics[n]; ok {
			b.Errorf("%s twice", n)
		}
		s.Metrics[n] = modelMetric{Desc: d}
		if set := &b.fetch(nil, d.PMID).Sets[0]; set.NumVal > 0 {
			s.Metrics[n] = modelMetric{d, b.show(set)}
		}
		s.Numbers[n] = d
		cluster := d.PMID.Cluster()
		label(pcpwire.LabelCluster, uint32(pcpwire.NewPMID(domain, cluster, 0)), -1, cluster)
		label(pcpwire.LabelItem, uint32(d.PMID), -1, cluster)
		if d.InDom == pcpwire.InDomNull {
			continue
		}
		s.InDoms[d.InDom] = b.instances(d.InDom)
		label(pcpwire.LabelInDom, uint32(d.InDom), -1, cluster)
		s.Instances[d.InDom] = map[int32]string{}
		for in := range strings.FieldsSeq(s.InDoms[d.InDom]) {
			i := insts(in)[0]
			s.Instances[d.InDom][i.ID] = i.Name
			label(pcpwire.LabelInstances, uint32(d.InDom), i.ID, cluster)
		}
	}
	for n, d := range s.Numbers {
		if labelled[d.PMID.Cluster()] {
			s.Labelled[n] = d
		}
	}
	s.Status = b.statuses()
	return s
}

// check compares what is exported with the files that there are.
func (s *modelState) check(b *box, files map[string]*modelFile) {
	indoms := map[pcpwire.InDom]string{}
	shown := map[int64]string{}
	for n, m := range s.Metrics {
		for v := range strings.FieldsSeq(m.Values) {
			inst, value := parseValue(b, v)
			shown[value] = n
			file := modelFiles[value/1e9-1]
			f := files[file]
			if f == nil || f.version != int(value%1e9/1e5) || f.value(m.Desc.PMID.Item(), inst) != value {
				b.Errorf("%s of %v has value %d of instance %d, which is of another metric", n, m.Desc, value, inst)
				continue
			}
			i := slices.IndexFunc(f.metrics, func(x mmvimage.Metric) bool {
				return f.full(file, x.Name) == n && x.Item == m.Desc.PMID.Item() && pcpwire.Type(x.Type) == m.Desc.Type && (x.InDom == 0) == (inst == -1)
			})
			if i < 0 {
				b.Errorf("%s of %v has value %d, of a metric that is not in %q", n, m.Desc, value, file)
				continue
			}
			if inst == -1 {
				continue
			}
			serial := f.metrics[i].InDom
			for _, in := range f.indoms[serial] {
				if in.ID == inst && s.Instances[m.Desc.InDom][inst] != in.Name {
					b.Errorf("%s: the value of %q is shown as that of %q", n, in.Name, s.Instances[m.Desc.InDom][inst])
				}
			}
			what := fmt.Sprint(m.Desc.PMID.Cluster(), serial)
			if o, ok := indoms[m.Desc.InDom]; ok && o != what {
				b.Errorf("indom %v is that of %s and of %s", m.Desc.InDom, o, what)
			}
			indoms[m.Desc.InDom] = what
		}
	}
	for name, f := range files {
		if s.Status[name] != "" {
			continue
		}
		for _, m := range f.metrics {
			x, ok := s.Metrics[f.full(name, m.Name)]
			if !ok || x.Desc.PMID.Item() != m.Item {
				b.Errorf("%s of %q is not exported, and nothing says why", m.Name, name)
			}
			ids := []int32{-1}
			if m.InDom != 0 {
				ids = nil
				for _, in := range f.indoms[m.InDom] {
					ids = append(ids, in.ID)
				}
			}
			for _, id := range ids {
				if shown[f.value(m.Item, id)] != f.full(name, m.Name) {
					b.Errorf("%s of %q has no value of instance %d, and nothing says why", m.Name, name, id)
				}
			}
		}
	}
}

// parseValue takes "1=5" apart, or "5".
func parseValue(b *box, s string) (inst int32, value int64) {
	inst = -1
	if id, rest, ok := strings.Cut(s, "="); ok {
		if _, err := fmt.Sscan(id, &inst); err != nil {
			b.Fatalf("value %q: %v", s, err)
		}
		s = rest
	}
	if _, err := fmt.Sscan(s, &value); err != nil {
		b.Fatalf("value %q: %v", s, err)
	}
	return inst, value
}

// of tells whether a metric has values of that file.
func (m modelMetric) of(b *box, f *modelFile) bool {
	for s := range strings.FieldsSeq(m.Values) {
		if _, v := parseValue(b, s); v/1e9 == int64(f.index+1) {
			return true
		}
	}
	return false
}

// stable checks that of the files that were there before, are there now and
// have not changed, no number has.
func (s *modelState) stable(b *box, before *modelState, same map[string]*modelFile) {
	called := map[pcpwire.PMID]string{}
	for n, m := range s.Metrics {
		called[m.Desc.PMID] = n
	}
	for name, f := range same {
		for _, m := range f.metrics {
			n := f.full(name, m.Name)
			if was := before.Metrics[n]; was.of(b, f) && called[was.Desc.PMID] != "" && called[was.Desc.PMID] != n {
				b.Errorf("%v was %s of %q, which is there and has not changed, and is now %s", was.Desc.PMID, n, name, called[was.Desc.PMID])
			}
			was, is := before.Metrics[n], s.Metrics[n]
			for _, in := range f.indoms[m.InDom] {
				if !was.of(b, f) || was.Desc != is.Desc || before.Instances[was.Desc.InDom][in.ID] != in.Name {
					continue
				}
				if now := s.Instances[is.Desc.InDom][in.ID]; now != in.Name {
					b.Errorf("%s: instance %d was %q in %q, which is there and has not changed, and is now %q", n, in.ID, in.Name, name, now)
				}
			}
		}
	}
	for name, f := range same {
		for _, m := range f.metrics {
			n := f.full(name, m.Name)
			was, is := before.Metrics[n], s.Metrics[n]
			if !was.of(b, f) || !is.of(b, f) { // another file's
				continue
			}
			if was.Desc != is.Desc {
				b.Errorf("%s: %v is now %v", n, was.Desc, is.Desc)
			}
		}
	}
}

// goneBack returns the files that are back in the cluster that they ask for.
func (b *box) goneBack() (names []string) {
	b.look()
	for _, line := range b.told() {
		if name, _, ok := strings.Cut(line, ": cluster "); ok && strings.Contains(line, "has become free") {
			names = append(names, name[2:])
		}
	}
	return names
}

func TestModel(t *testing.T) {
	runs := 150
	if testing.Short() || raceEnabled {
		runs = 40
	}
	for seed := range runs {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			runModel(t, uint64(seed))
		})
	}
}

func runModel(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable
	b := newBox(t, func(o *exporter.Options) { o.SanitizeNames = seed%4 == 3 }).keep()
	files := map[string]*modelFile{}
	change := func() string {
		i := r.IntN(len(modelFiles))
		name := modelFiles[i]
		f := files[name]
		switch {
		case f != nil && r.IntN(2) == 0:
			b.remove(name)
			delete(files, name)
			return "remove " + name
		case f != nil && r.IntN(2) == 0: // published again as it was
			b.put(name, f.image())
			return "again " + name
		}
		version := 0
		if f != nil {
			version = f.version + 1
		}
		if i%2 == 0 || f == nil || r.IntN(2) == 0 {
			f = randomFile(r, i, version+r.IntN(100))
		} else { // another instance, all else the same
			n := *f
			n.version, n.indoms = version, maps.Clone(f.indoms)
			for serial := range n.indoms {
				id := int32(r.IntN(4))
				n.indoms[serial] = slices.DeleteFunc(slices.Clone(n.indoms[serial]), func(in mmvimage.Inst) bool { return in.ID == id })
			}
			f = &n
		}
		files[name] = f
		b.put(name, f.image())
		return fmt.Sprintf("put %s: %+v", name, *f)
	}
	for range r.IntN(4) {
		change()
	}
	b.start()
	last := b.export()
	last.check(b, files)
	var log []string
	for range 25 {
		was := maps.Clone(files)
		step := ""
		restart := false
		switch r.IntN(6) {
		case 0:
			step, restart = "restart", true
			b.restart()
		case 1:
			restart = true
			b.stop()
			var stepSb365 strings.Builder
			for range r.IntN(3) {
				stepSb365.WriteString(change() + "; ")
			}
			step += stepSb365.String()
			step = "restarted after " + step
			b.start()
		case 2:
			var stepSb371 strings.Builder
			for range 3 {
				stepSb371.WriteString(change() + "; ")
			}
			step += stepSb371.String()
		default:
			step = change()
		}
		log = append(log, step)
		same := maps.Clone(was)
		maps.DeleteFunc(same, func(name string, f *modelFile) bool { return files[name] != f })
		if restart {
			if moved := b.goneBack(); len(moved) > 0 { // which is for the start of an agent alone to do
				log = append(log, fmt.Sprint("back: ", moved))
				for _, name := range moved {
					delete(same, name)
				}
			}
		}
		now := b.export()
		now.check(b, files)
		now.stable(b, last, same)
		if restart {
			b.restart() // and once more, which changes nothing
			if again := b.goneBack(); len(again) > 0 {
				t.Errorf("back only at the second start: %q", again)
			}
			again := b.export()
			x, y := *now, *again
			x.Changes, y.Changes = pmda.Changes{}, pmda.Changes{}
			if diff := cmp.Diff(x, y); diff != "" {
				t.Errorf("a restart changes (-before +after):\n%s", diff)
			}
			now = again
		} else {
			told, is := now.Changes.Names != last.Changes.Names, !maps.Equal(now.Numbers, last.Numbers)
			if told != is {
				t.Errorf("names changed: %v, told: %v", is, told)
			}
			told, is = now.Changes.Labels != last.Changes.Labels, !maps.Equal(now.Labels, last.Labels)
			if is && !told || told && !is && maps.Equal(now.Labelled, last.Labelled) {
				t.Errorf("labels changed: %v, told: %v", is, told)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%s\nstate %+v\nstatus %q", seed, strings.Join(log, "\n"), now.Metrics, now.Status)
		}
		last = now
	}
}
