package exporter_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

// controls returns name, item and descriptor of every control metric.
func (b *box) controls() (out []string) {
	b.Helper()
	names, err := b.traverse("mmv.control")
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range names {
		d := b.desc(n)
		out = append(out, fmt.Sprintf("%s %v %v %v %v %q", strings.TrimPrefix(n, "mmv.control."), d.PMID, d.Type, d.InDom, d.Semantics, d.Units))
	}
	return out
}

func TestControlMetrics(t *testing.T) {
	const none = "PM_INDOM_NULL"
	six := []string{
		"files 70.0.2 32 " + none + ` instant ""`,
		"debug 70.0.1 32 " + none + ` instant ""`,
		"reload 70.0.0 32 " + none + ` instant ""`,
	}
	seven := []string{
		"metrics 70.0.3 32 " + none + ` instant ""`,
		"files 70.0.2 32 " + none + ` instant ""`,
		"debug 70.0.1 STRING " + none + ` instant ""`,
		"reload 70.0.0 32 " + none + ` instant ""`,
	}
	problems := []string{
		`file.rejects 70.0.517 U32 70.0 discrete "count"`,
		`file.status 70.0.516 STRING 70.0 discrete ""`,
		"faults 70.0.515 U64 " + none + ` counter "count"`,
		"reloads 70.0.514 U64 " + none + ` counter "count"`,
		"rejected 70.0.513 U32 " + none + ` discrete "count"`,
		"pending 70.0.512 U32 " + none + ` discrete "count"`,
	}
	all := []string{
		`file.generation 70.0.522 U64 70.0 discrete ""`,
		`file.size 70.0.521 U64 70.0 discrete "byte"`,
		`file.pid 70.0.520 32 70.0 discrete ""`,
		`file.cluster 70.0.519 U32 70.0 discrete ""`,
		`file.metrics 70.0.518 U32 70.0 discrete "count"`,
	}
	tests := []struct {
		version string
		files   exporter.FileMetrics
		want    []string
	}{
		{"6.0.3", exporter.FileMetricsOff, six},
		{"5.3.1", exporter.FileMetricsOff, six},
		{"7.0.0", exporter.FileMetricsOff, seven},
		{"10.1.0", exporter.FileMetricsOff, seven},
		{"", exporter.FileMetricsOff, seven},
		{"6.3.8", exporter.FileMetricsProblems, slices.Concat(problems, six)},
		{"7.2.1", "", slices.Concat(problems, seven)},
		{"7.2.1", exporter.FileMetricsAll, slices.Concat(all, problems, seven)},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.version, tt.files), func(t *testing.T) {
			b := newBox(t, func(o *exporter.Options) { o.PCPVersion, o.FileMetrics = tt.version, tt.files })
			b.start()
			if diff := cmp.Diff(tt.want, b.controls()); diff != "" {
				t.Errorf("control metrics (-want +got):\n%s", diff)
			}
			names, _ := b.traverse("mmv.control")
			texts := map[string]bool{}
			for _, n := range names {
				p := b.pmid(n)
				equal(t, "name", strings.Join(b.namesOf(p), " "), n)
				line, err := b.text(uint32(p), pcpwire.TextPMID|pcpwire.TextOneLine)
				if err != nil || line == "" || len(line) > 70 || strings.Contains(line, "\n") || texts[line] {
					t.Errorf("%s: line %q, %v", n, line, err)
				}
				help, err := b.text(uint32(p), pcpwire.TextPMID|pcpwire.TextHelp)
				if err != nil || help == "" || texts[help] {
					t.Errorf("%s: help %q, %v", n, help, err)
				}
				for l := range strings.Lines(help) {
					if len(l) > 90 {
						t.Errorf("%s: long line %q", n, l)
					}
				}
				texts[line], texts[help] = true, true
			}
			id := uint32(pcpwire.NewInDom(domain, 0))
			line, err := b.text(id, pcpwire.TextInDom|pcpwire.TextOneLine)
			help, err2 := b.text(id, pcpwire.TextInDom|pcpwire.TextHelp)
			if tt.files == exporter.FileMetricsOff {
				if !errors.Is(err, pcpwire.ErrInDom) || !errors.Is(err2, pcpwire.ErrInDom) || b.instances(pcpwire.InDom(id)) != pcpwire.ErrInDom.Error() {
					t.Errorf("indom of files: %v, %v", err, err2)
				}
			} else if line == "" || help == "" || err != nil || err2 != nil {
				t.Errorf("indom of files: %q, %q, %v, %v", line, help, err, err2)
			}
			if _, err := b.text(uint32(pcpwire.NewPMID(domain, 0, 99)), pcpwire.TextPMID|pcpwire.TextHelp); !errors.Is(err, pcpwire.ErrPMID) {
				t.Errorf("text of an unknown one: %v", err)
			}
		})
	}
}

func TestControlValues(t *testing.T) {
	b := newBox(t, func(o *exporter.Options) { o.FileMetrics = exporter.FileMetricsAll })
	b.start()
	values := func() string {
		var out []string
		for _, n := range []string{"reload", "debug", "files", "metrics", "pending", "rejected", "reloads", "faults"} {
			out = append(out, n+"="+b.values("mmv.control."+n))
		}
		return strings.Join(out, " ")
	}
	equal(t, "without files", values(), "reload=0 debug= files=0 metrics=0 pending=0 rejected=0 reloads=0 faults=0")
	img := one(5).Cluster(9).PID(4711).Generation(77).Metric(metric("m", 2, 1))
	b.put("a", img)
	b.write("p", one(1).Generations(1, 0).Build())
	b.write("r", []byte(strings.Repeat("junk", 20)))
	b.put("x-y", one(1))
	equal(t, "with files", values(), "reload=1 debug= files=1 metrics=1 pending=1 rejected=2 reloads=1 faults=0")
	equal(t, "instances", b.instances(pcpwire.NewInDom(domain, 0)), "0:a 1:p 2:r 3:x-y")
	files := func() string {
		var out []string
		for _, n := range []string{"rejects", "metrics", "cluster", "pid", "size", "generation"} {
			out = append(out, n+" "+b.values("mmv.control.file."+n))
		}
		return strings.Join(out, "; ")
	}
	equal(t, "per file", files(), fmt.Sprintf("rejects 0=1; metrics 0=1; cluster 0=9; pid 0=4711; size 0=%d; generation 0=77", len(img.Build())))
	b.remove("p", "r", "x-y")
	b.put("a", one(6))
	equal(t, "with one good one", values(), "reload=0 debug= files=1 metrics=1 pending=0 rejected=0 reloads=2 faults=0")
	equal(t, "status", fmt.Sprint(b.statuses()), "map[a:loaded]")
	b.look()
	equal(t, "with no change", values(), "reload=0 debug= files=1 metrics=1 pending=0 rejected=0 reloads=2 faults=0")
	must(t, os.Truncate(filepath.Join(b.dir, "a"), 0))
	equal(t, "with it cut", values(), "reload=1 debug= files=0 metrics=1 pending=1 rejected=0 reloads=3 faults=0")
}

func TestFileMetricsProblems(t *testing.T) {
	b := newBox(t)
	b.put("good", one(1))
	b.put("half", one(1).Metric(metric("m", 2, 1)))
	b.start()
	equal(t, "status", fmt.Sprint(b.statuses()), `map[half:loaded, 1 metric not exported: metric[1] m: name "m": name is taken: "m"]`)
	equal(t, "rejects", b.values("mmv.control.file.rejects"), "0=1")
	b.put("half", one(2))
	equal(t, "no values", b.values("mmv.control.file.status")+b.values("mmv.control.file.rejects"), "")
	equal(t, "no instances", b.instances(pcpwire.NewInDom(domain, 0)), "")
}

// The metrics over files obey the profile.
func TestFileMetricsProfile(t *testing.T) {
	b := newBox(t, func(o *exporter.Options) { o.FileMetrics = exporter.FileMetricsAll })
	for _, n := range []string{"a", "b", "c"} {
		b.put(n, one(1))
	}
	b.start()
	p := &pcpwire.Profile{InDoms: []pcpwire.ProfileInDom{{InDom: pcpwire.NewInDom(domain, 0), State: pcpwire.ProfileExclude, Insts: []int32{1}}}}
	r := b.fetch(p, b.pmid("mmv.control.file.status"), b.pmid("mmv.control.file.cluster"))
	equal(t, "status", b.show(&r.Sets[0]), "1=loaded")
	equal(t, "cluster", b.show(&r.Sets[1]), "1=2")
	none := &pcpwire.Profile{State: pcpwire.ProfileExclude}
	r = b.fetch(none, b.pmid("mmv.control.file.status"), b.pmid("mmv.control.file.size"), b.pmid("mmv.control.files"))
	equal(t, "values", fmt.Sprint(r.Sets[0].NumVal, r.Sets[1].NumVal, r.Sets[2].NumVal), "0 0 1")
}

// There are at most 1000 instances; files that are not cleanly loaded come first.
func TestFileInstancesBound(t *testing.T) {
	b := newBox(t, func(o *exporter.Options) { o.FileMetrics = exporter.FileMetricsAll })
	for i := range 990 {
		b.put(fmt.Sprintf("a%04d", i), one(1))
	}
	for i := range 20 {
		b.write(fmt.Sprintf("z%04d", i), []byte("junk"+strings.Repeat("x", 50)))
	}
	b.start()
	st := b.statuses()
	bad := 0
	for name := range st {
		if name[0] == 'z' {
			bad++
		}
	}
	equal(t, "files", fmt.Sprint(len(st), bad), "1000 20")
	for i := range 1100 {
		b.write(fmt.Sprintf("y%04d", i), []byte("junk"+strings.Repeat("x", 50)))
	}
	st = b.statuses()
	equal(t, "files", strconv.Itoa(len(st))+st["a0000"]+st["z0000"], "1000")
	equal(t, "rejected", b.values("mmv.control.rejected"), "1120")
}

func TestStore(t *testing.T) {
	for _, version := range []string{"6.0.3", "7.2.1"} {
		seven := version != "6.0.3"
		var options []string
		b := newBox(t, func(o *exporter.Options) {
			o.PCPVersion = version
			o.Debug = func(s string) error {
				if s == "bad" {
					return errors.New("bad")
				}
				options = append(options, s)
				return nil
			}
		})
		b.put("a", one(1))
		b.start()
		store := func(p pcpwire.PMID, a pcpwire.AtomValue) (err error) {
			v, format, e := a.Stuff(pcpwire.InstNull)
			must(t, e)
			b.ask(func(s pmda.Session) {
				err = s.Store(&pcpwire.ValueSet{PMID: p, NumVal: 1, Format: format, Values: []pcpwire.Value{v}})
			})
			return err
		}
		reload, debug := pcpwire.NewPMID(domain, 0, 0), pcpwire.NewPMID(domain, 0, 1)
		text := func(s string) pcpwire.AtomValue { return pcpwire.AtomString([]byte(s)) }
		tests := []struct {
			name  string
			pmid  pcpwire.PMID
			value pcpwire.AtomValue
			want  error
		}{
			{"reload", reload, pcpwire.AtomI32(1), nil},
			{"reload 0", reload, pcpwire.AtomI32(0), nil},
			{"reload with text", reload, text("1"), pcpwire.ErrConv},
			{"reload with 64 bits", reload, pcpwire.AtomI64(1), pcpwire.ErrConv},
			{"files", pcpwire.NewPMID(domain, 0, 2), pcpwire.AtomI32(1), pcpwire.ErrPermission},
			{"status", pcpwire.NewPMID(domain, 0, 516), text("x"), pcpwire.ErrPermission},
			{"unknown", pcpwire.NewPMID(domain, 0, 77), pcpwire.AtomI32(1), pcpwire.ErrPMID},
			{"a file's", b.pmid("mmv.a.m"), pcpwire.AtomI64(1), pcpwire.ErrPermission},
			{"another agent's", pcpwire.NewPMID(domain+1, 0, 0), pcpwire.AtomI32(1), pcpwire.ErrPermission},
			{"debug", debug, map[bool]pcpwire.AtomValue{true: text("pdu,fetch"), false: pcpwire.AtomI32(9)}[seven], nil},
			{"debug of another type", debug, map[bool]pcpwire.AtomValue{false: text("pdu"), true: pcpwire.AtomI32(9)}[seven], pcpwire.ErrConv},
		}
		for _, tt := range tests {
			if err := store(tt.pmid, tt.value); !errors.Is(err, tt.want) {
				t.Errorf("PCP %s: store %s: %v, not %v", version, tt.name, err, tt.want)
			}
		}
		equal(t, "options", strings.Join(options, " "), map[bool]string{true: "pdu,fetch", false: "all"}[seven])
		equal(t, "debug", b.values("mmv.control.debug"), map[bool]string{true: "pdu,fetch", false: "9"}[seven])
		if seven {
			if err := store(debug, text("bad")); !errors.Is(err, pcpwire.ErrConv) {
				t.Errorf("bad options: %v", err)
			}
			equal(t, "debug as before", b.values("mmv.control.debug"), "pdu,fetch")
			must(t, store(debug, text("")))
			equal(t, "debug", b.values("mmv.control.debug"), "")
		} else {
			must(t, store(debug, pcpwire.AtomI32(0)))
			equal(t, "debug", b.values("mmv.control.debug"), "0")
		}
		b.ask(func(s pmda.Session) {
			if err := s.Store(&pcpwire.ValueSet{PMID: reload}); !errors.Is(err, pcpwire.ErrBadStore) {
				t.Errorf("store of nothing: %v", err)
			}
		})
		b.opts.Debug = nil
		b.restart()
		a := map[bool]pcpwire.AtomValue{true: text("pdu"), false: pcpwire.AtomI32(1)}[seven]
		if err := store(debug, a); !errors.Is(err, pcpwire.ErrPermission) {
			t.Errorf("debug that cannot be set: %v", err)
		}
		b.stop()
	}
}

// A store to reload looks at all files, and tells pmcd's clients to do likewise.
func TestReload(t *testing.T) {
	b := newBox(t)
	b.put("a", one(1))
	b.start()
	was := b.look()
	reloads := b.values("mmv.control.reloads")
	v, format, err := pcpwire.AtomI32(1).Stuff(pcpwire.InstNull)
	must(t, err)
	b.ask(func(s pmda.Session) {
		must(t, s.Store(&pcpwire.ValueSet{PMID: pcpwire.NewPMID(domain, 0, 0), NumVal: 1, Format: format, Values: []pcpwire.Value{v}}))
	})
	is := b.look()
	if is.Names == was.Names || is.Labels != was.Labels {
		t.Errorf("changes %v, then %v", was, is)
	}
	equal(t, "later", b.look(), is)
	if again := b.values("mmv.control.reloads"); again == reloads {
		t.Errorf("reloads %s, then %s", reloads, again)
	}
	equal(t, "value", b.values("mmv.a.m"), "1")
	b.e.Rescan()
	if b.look().Names == is.Names {
		t.Error("a rescan is not told")
	}
}
