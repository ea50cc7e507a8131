package check

import (
	"errors"
	"fmt"
	"strings"

	"pmdammv/cmd/pmdammv/internal/local"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/reader"
)

// exported finds out which metrics of the loaded files are exported, and why
// the others are not, from the agent's answers.
func (r *Report) exported(ctx *local.Context) error {
	facts, err := fileFacts(ctx)
	if err != nil {
		return err
	}
	x := &export{Context: ctx, instances: map[instanceKey]owner{}}
	for i := range r.Files {
		f := &r.Files[i]
		if f.file == nil || f.walk == nil {
			continue
		}
		if f.forbidden {
			f.State, f.Reason = reader.Rejected.String(), "the agent cannot read it"
			continue
		}
		if status, ok := strings.CutPrefix(facts.status[f.Name], "rejected: "); ok {
			f.State, f.Reason = reader.Rejected.String(), status
			code := Code("no-cluster")
			if first, _, _ := strings.Cut(f.Name, "."); first == "control" {
				code = "file-reserved"
			} else if badFileName(f.Name) {
				code = "file-name"
			}
			f.add(code, "%s", status)
			continue
		}
		x.file(f, facts)
	}
	for i := range r.Files {
		r.moved(&r.Files[i], ctx.Domain())
	}
	return nil
}

// moved tells of a file that has not got the cluster that it asks for.
func (r *Report) moved(f *File, domain uint32) {
	if f.PMID == "" || f.file.Catalog.Header.Cluster == 0 {
		return
	}
	want := fmt.Sprintf("%d.%d", domain, f.file.Catalog.Header.Cluster)
	if f.PMID == want {
		return
	}
	other := "another file"
	for i := range r.Files {
		if r.Files[i].PMID == want {
			other = fmt.Sprintf("%q", r.Files[i].Name)
			break
		}
	}
	f.add("cluster-moved", "it asks for cluster %d, which %s has with other metrics, and is given %s", f.file.Catalog.Header.Cluster, other, strings.TrimPrefix(f.PMID, fmt.Sprintf("%d.", domain)))
}

func badFileName(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return !nameRune(r) }) ||
		strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..")
}

// facts is what the agent's metrics about files say, by name of the file.
type facts struct {
	cluster map[string]uint32
	status  map[string]string
}

// fileFacts fetches them. There are none for files beyond the first thousand.
func fileFacts(ctx *local.Context) (facts, error) {
	f := facts{map[string]uint32{}, map[string]string{}}
	var descs []pcpwire.Desc
	for _, name := range []string{"cluster", "status"} {
		pmid, err := ctx.PMID(ctx.Root() + ".control.file." + name)
		if err != nil {
			return f, err
		}
		d, err := ctx.Desc(pmid)
		if err != nil {
			return f, err
		}
		descs = append(descs, d)
	}
	insts, err := ctx.Instances(descs[0].InDom)
	if err != nil {
		return f, err
	}
	names := map[int32]string{}
	for _, in := range insts {
		names[in.ID] = in.Name
	}
	values, err := ctx.Fetch(descs)
	if err != nil {
		return f, err
	}
	for _, v := range values[0].Values {
		f.cluster[names[v.Inst]] = v.Atom.U32()
	}
	for _, v := range values[1].Values {
		f.status[names[v.Inst]] = string(v.Atom.Str)
	}
	return f, nil
}

// export compares files with what the agent exports.
type export struct {
	*local.Context
	instances map[instanceKey]owner
}

type instanceKey struct {
	cluster, serial uint32
	id              int32
}

type owner struct{ file, name string }

func (x *export) file(f *File, known facts) {
	h := &f.file.Catalog.Header
	f.Root = x.Root()
	if h.Flags&reader.FlagNoPrefix == 0 {
		f.Root += "." + x.sanitized(f.Name)
	}
	cluster, ok := known.cluster[f.Name]
	for i := 0; !ok && i < len(f.walk.metrics); i++ {
		if pmid, err := x.PMID(f.Root + "." + string(f.walk.metrics[i].Name.Text)); err == nil {
			cluster, ok = pmid.Cluster(), true
		}
	}
	if !ok {
		return // nothing of it is exported, and that has been told
	}
	f.PMID = fmt.Sprintf("%d.%d", x.Domain(), cluster)
	told := map[int]bool{}
	for _, i := range f.walk.items {
		told[i] = true // that is: good as far as the file goes
	}
	for i := range f.walk.metrics {
		m := &f.walk.metrics[i]
		name := f.Root + "." + string(m.Name.Text)
		pmid, err := x.PMID(name)
		mine := pcpwire.NewPMID(x.Domain(), cluster, m.Item)
		switch {
		case told[i] && err == nil && pmid == mine:
			f.Exported++
		case told[i]:
			x.lost(f, i, name, mine)
		}
	}
	x.sameInstances(f, cluster)
}

// lost says what of another file keeps a metric from being exported.
func (x *export) lost(f *File, i int, name string, mine pcpwire.PMID) {
	m := &f.walk.metrics[i]
	add := func(code Code, format string, args ...any) {
		f.Findings = append(f.Findings, newFinding(code, "metric", i, "name", int64(m.off), fmt.Sprintf(format, args...)))
	}
	if pmid, err := x.PMID(name); err == nil {
		add("name-taken", "%s is another file's metric, with PMID %v", name, pmid)
		return
	}
	if names, err := x.NamesOf(mine); err == nil && len(names) > 0 {
		add("pmid-taken", "its PMID %v is that of %s", mine, names[0])
		return
	}
	for k := len(name); k > 0; k = strings.LastIndexByte(name[:k], '.') {
		if _, err := x.PMID(name[:k]); err == nil {
			add("name-below-leaf", "%s lies below the metric %s", name, name[:k])
			return
		}
	}
	if below, err := x.Names(name); err == nil && len(below) > 0 {
		add("name-below-leaf", "there are metrics below %s: %s", name, below[0])
		return
	}
	add("not-exported", "%s is not exported", name)
}

// sameInstances tells of instances that have another name in another file of
// the cluster.
func (x *export) sameInstances(f *File, cluster uint32) {
	cat := f.file.Catalog
	for i := range cat.InDoms {
		d := &cat.InDoms[i]
		told := false
		for _, in := range cat.Instances(d) {
			key, name := instanceKey{cluster, d.Serial, in.Internal}, string(cat.Text(in.External))
			o, ok := x.instances[key]
			if !ok {
				x.instances[key] = owner{f.Name, name}
				continue
			}
			if o.name != name && !told {
				told = true
				f.add("instance-names", "instance %d of indom %d is %q here and %q in %q", in.Internal, d.Serial, name, o.name, o.file)
			}
		}
	}
}

func (x *export) sanitized(name string) string {
	if _, err := x.Names(x.Root() + "." + name); !errors.Is(err, pcpwire.ErrName) {
		return name
	}
	b := []byte(name)
	for i, c := range b {
		if !nameRune(rune(c)) {
			b[i] = '_'
		}
	}
	return string(b)
}
