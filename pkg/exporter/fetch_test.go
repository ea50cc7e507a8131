package exporter_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/test/mmvimage"
)

// typed is a singular metric of a type.
func typed(name string, item uint32, typ int32, v mmvimage.Value) mmvimage.Metric {
	return mmvimage.Metric{Name: name, Item: item, Type: typ, Sem: mmvimage.Instant, Values: []mmvimage.Value{v}}
}

// all returns the values of several metrics of one fetch.
func (b *box) all(profile *pcpwire.Profile, names ...string) string {
	b.Helper()
	var pmids []pcpwire.PMID
	for _, n := range names {
		pmids = append(pmids, b.pmid(n))
	}
	var out []string
	r := b.fetch(profile, pmids...)
	for i := range r.Sets {
		if r.Sets[i].PMID != pmids[i] {
			b.Errorf("value set %d is of %v, not %v", i, r.Sets[i].PMID, pmids[i])
		}
		out = append(out, b.show(&r.Sets[i]))
	}
	return strings.Join(out, " | ")
}

func TestFetchTypes(t *testing.T) {
	allOnes := mmvimage.Value{Bits: math.MaxUint64}
	for _, sentinel := range []bool{false, true} {
		img := mmvimage.New(2).Cluster(5).
			Metric(typed("i32", 1, mmvimage.I32, mmvimage.Int32(-7))).
			Metric(typed("u32", 2, mmvimage.U32, mmvimage.Int32(-2))).
			Metric(typed("i64", 3, mmvimage.I64, mmvimage.Int(math.MinInt64))).
			Metric(typed("u64", 4, mmvimage.U64, mmvimage.Uint(math.MaxUint64-1))).
			Metric(typed("float", 5, mmvimage.Float, mmvimage.Float32(1.5))).
			Metric(typed("double", 6, mmvimage.Double, mmvimage.Float64(-0.25))).
			Metric(typed("text", 7, mmvimage.String, mmvimage.Text("hello"))).
			Metric(typed("elapsed", 8, mmvimage.Elapsed, mmvimage.Timed(12345, 0))).
			Metric(typed("none", 9, mmvimage.NoSupport, mmvimage.Int(1))).
			Metric(typed("s32", 11, mmvimage.I32, allOnes)).
			Metric(typed("s64", 12, mmvimage.U64, allOnes)).
			Metric(typed("sfloat", 13, mmvimage.Float, mmvimage.Float32(float32(math.NaN())))).
			Metric(typed("sdouble", 14, mmvimage.Double, mmvimage.Float64(math.NaN()))).
			Metric(typed("stext", 15, mmvimage.String, mmvimage.Text(""))).
			Metric(typed("selapsed", 16, mmvimage.Elapsed, mmvimage.Value{Bits: math.MaxUint64}))
		b := newBox(t)
		want := "-1 | 18446744073709551615 | NaN | NaN |  | -1"
		if sentinel {
			img.Flags(mmvimage.Sentinel)
			want = " |  |  |  |  | "
		}
		b.put("f", img)
		b.start()
		equal(t, "values", b.all(nil, "mmv.f.i32", "mmv.f.u32", "mmv.f.i64", "mmv.f.u64", "mmv.f.float", "mmv.f.double", "mmv.f.text", "mmv.f.elapsed", "mmv.f.none"),
			"-7 | 4294967294 | -9223372036854775808 | 18446744073709551614 | 1.5 | -0.25 | hello | 12345 | "+pcpwire.ErrAppVersion.Error())
		equal(t, "sentinels", b.all(nil, "mmv.f.s32", "mmv.f.s64", "mmv.f.sfloat", "mmv.f.sdouble", "mmv.f.stext", "mmv.f.selapsed"), want)
		d := b.desc("mmv.f.elapsed")
		equal(t, "elapsed", fmt.Sprint(d.Type, d.Semantics, d.Units), "64 counter microsec")
		set := b.fetch(nil, b.pmid("mmv.f.stext")).Sets[0]
		equal(t, "an empty text is a value", set.NumVal, map[bool]int32{false: 1, true: 0}[sentinel])
		b.stop()
	}
}

func TestFetchElapsed(t *testing.T) {
	b := newBox(t)
	started := time.Now().Add(-time.Hour).UnixMicro()
	b.put("f", mmvimage.New(1).Metric(typed("m", 1, mmvimage.Elapsed, mmvimage.Timed(1000, -started))))
	b.start()
	var got int64
	if _, err := fmt.Sscan(b.values("mmv.f.m"), &got); err != nil {
		t.Fatal(err)
	}
	hour := time.Hour.Microseconds()
	if got < hour+1000 || got > hour+60e6 {
		t.Errorf("an hour and a millisecond is %d", got)
	}
}

func TestFetchStrings(t *testing.T) {
	img := mmvimage.New(2).Metric(typed("long", 1, mmvimage.String, mmvimage.Text(strings.Repeat("x", 255)))).
		Metric(typed("unended", 2, mmvimage.String, mmvimage.Text(strings.Repeat("y", 256)))).
		Metric(typed("bad", 3, mmvimage.String, mmvimage.Text("z")))
	data := img.Build()
	mmvimage.PutU64(data, img.Layout().Value(2)+mmvimage.ValueExtra, 1<<40)
	b := newBox(t)
	b.write("f", data)
	b.start()
	equal(t, "long", b.values("mmv.f.long"), strings.Repeat("x", 255))
	equal(t, "without an end", b.values("mmv.f.unended"), strings.Repeat("y", 255))
	equal(t, "outside", b.fetch(nil, b.pmid("mmv.f.bad")).Sets[0].NumVal, 0)
}

// The statuses are those of PCP's agent: that of the last instance asked for.
func TestFetchStatuses(t *testing.T) {
	in := insts("0:a", "1:b", "2:c")
	values := func(vs ...mmvimage.Value) mmvimage.Metric {
		return mmvimage.Metric{Name: "m", Item: 1, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 1, Values: vs}
	}
	one, none, unset := mmvimage.Int(1), mmvimage.None(), mmvimage.Value{Bits: math.MaxUint64}
	unsupported := values(one, one, one)
	unsupported.Type = mmvimage.NoSupport
	missing := metric("m", 1, 0)
	missing.Values = mmvimage.NoValues()
	tests := []struct {
		name    string
		m       mmvimage.Metric
		profile string // instances, or all
		want    string
	}{
		{"all", values(one, one, one), "all", "0=1 1=1 2=1"},
		{"one asked for", values(one, one, one), "1", "1=1"},
		{"none asked for", values(one, one, one), "", ""},
		{"unknown ones asked for", values(one, one, one), "7", ""},
		{"a slot missing", values(one, none, one), "all", "0=1 2=1"},
		{"only that asked for", values(one, none, one), "1", pcpwire.ErrInst.Error()},
		{"all missing", values(none, none, none), "all", pcpwire.ErrInst.Error()},
		{"all missing, none asked for", values(none, none, none), "", ""},
		{"the last missing, the others unset", values(unset, unset, none), "all", pcpwire.ErrInst.Error()},
		{"the last unset, the others missing", values(none, none, unset), "all", ""},
		{"the last asked for unset", values(none, unset, none), "0 1", ""},
		{"all unset", values(unset, unset, unset), "all", ""},
		{"one not unset", values(unset, one, unset), "all", "1=1"},
		{"not supported", unsupported, "all", pcpwire.ErrAppVersion.Error()},
		{"not supported, none asked for", unsupported, "", ""},
		{"singular, missing", missing, "all", pcpwire.ErrInst.Error()},
		{"singular, missing, no instances asked for", missing, "", pcpwire.ErrInst.Error()},
		{"singular, unset", typed("m", 1, mmvimage.I64, unset), "all", ""},
		{"singular text, missing", mmvimage.Metric{Name: "m", Item: 1, Type: mmvimage.String, Values: mmvimage.NoValues()}, "all", pcpwire.ErrInst.Error()},
		{"no such indom", many("m", 1, 9), "all", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			b.put("f", mmvimage.New(1).Flags(mmvimage.Sentinel).InDom(1, "", "", in...).Metric(tt.m))
			b.start()
			var p *pcpwire.Profile
			if tt.profile != "all" {
				p = &pcpwire.Profile{State: pcpwire.ProfileExclude}
				e := pcpwire.ProfileInDom{InDom: pcpwire.NewInDom(domain, 1<<11|1), State: pcpwire.ProfileExclude}
				for s := range strings.FieldsSeq(tt.profile) {
					e.Insts = append(e.Insts, int32(s[0]-'0'))
				}
				p.InDoms = append(p.InDoms, e)
			}
			equal(t, "values", b.all(p, "mmv.f.m"), tt.want)
		})
	}
}

func TestFetchProfile(t *testing.T) {
	b := newBox(t)
	in := insts("0:a", "1:b", "2:c")
	b.put("f", mmvimage.New(1).Cluster(4).InDom(1, "", "", in...).InDom(2, "", "", in...).
		Metric(many("m", 1, 1, 10, 11, 12)).Metric(many("n", 2, 2, 20, 21, 22)).Metric(metric("s", 3, 30)))
	b.put("w1", worker(9, many("w", 1, 1, 1, 2)).InDom(1, "", "", insts("5:p", "6:q")...))
	b.put("w2", worker(9, many("w", 1, 1, 3, 4)).InDom(1, "", "", insts("7:r", "8:s")...))
	b.start()
	d, w := pcpwire.NewInDom(domain, 4<<11|1), pcpwire.NewInDom(domain, 9<<11|1)
	const include, exclude = pcpwire.ProfileInclude, pcpwire.ProfileExclude
	tests := []struct {
		name string
		p    *pcpwire.Profile
		want string
	}{
		{"none", nil, "0=10 1=11 2=12 | 0=20 1=21 2=22 | 30 | 5=1 6=2 7=3 8=4"},
		{"everything", &pcpwire.Profile{}, "0=10 1=11 2=12 | 0=20 1=21 2=22 | 30 | 5=1 6=2 7=3 8=4"},
		{"nothing", &pcpwire.Profile{State: exclude}, " |  | 30 | "},
		{"all but one", &pcpwire.Profile{InDoms: []pcpwire.ProfileInDom{{InDom: d, State: include, Insts: []int32{1}}}}, "0=10 2=12 | 0=20 1=21 2=22 | 30 | 5=1 6=2 7=3 8=4"},
		{"one of each", &pcpwire.Profile{State: exclude, InDoms: []pcpwire.ProfileInDom{
			{InDom: w, State: exclude, Insts: []int32{8, 6}}, {InDom: d, State: exclude, Insts: []int32{2}},
		}}, "2=12 |  | 30 | 6=2 8=4"},
		{"the first entry counts", &pcpwire.Profile{InDoms: []pcpwire.ProfileInDom{
			{InDom: d, State: exclude, Insts: []int32{0}}, {InDom: d, State: include},
		}}, "0=10 | 0=20 1=21 2=22 | 30 | 5=1 6=2 7=3 8=4"},
	}
	for _, tt := range tests {
		for _, sorted := range []bool{false, true} {
			if sorted && tt.p != nil {
				tt.p.Sort()
			}
			equal(t, tt.name, b.all(tt.p, "mmv.f.m", "mmv.f.n", "mmv.f.s", "mmv.w"), tt.want)
		}
	}
}

// One fetch may name metrics in any order, any number of times, known or not.
func TestFetchAnyOrder(t *testing.T) {
	b := newBox(t)
	for i := range 3 {
		b.put(fmt.Sprint("f", i), mmvimage.New(2).Cluster(int32(i+1)).Metric(metric("a", 1, int64(10*i))).
			Metric(typed("b", 2, mmvimage.String, mmvimage.Text(fmt.Sprint("t", i)))).Metric(metric("c", 900, int64(10*i+2))))
	}
	b.start()
	want := []string{"20", "t0", "0", pcpwire.ErrPMID.Error(), "t0", "12", "22", "22", "3", "t1", pcpwire.ErrPMID.Error(), "10"}
	n := func(c, i uint32) pcpwire.PMID { return pcpwire.NewPMID(domain, c, i) }
	r := b.fetch(nil, n(3, 1), n(1, 2), n(1, 1), n(1, 3), n(1, 2), n(2, 900), n(3, 900), n(3, 900), n(0, 2), n(2, 2), n(7, 1), n(2, 1))
	for i := range r.Sets {
		equal(t, fmt.Sprint("set ", i), b.show(&r.Sets[i]), want[i])
	}
	equal(t, "nothing", len(b.fetch(nil).Sets), 0)
}

// A file that has been cut has no values; all others have theirs, in the same
// reply.
func TestFetchTruncated(t *testing.T) {
	b := newBox(t)
	var names []string
	for i := range 6 {
		name := fmt.Sprint("f", i)
		img := one(int64(i))
		for k := range 200 { // some pages
			img.Metric(metric(fmt.Sprint("n", k), uint32(k+2), 1))
		}
		b.put(name, img)
		names = append(names, "mmv."+name+".m")
	}
	b.start()
	equal(t, "before", b.all(nil, names...), "0 | 1 | 2 | 3 | 4 | 5")
	var pmids []pcpwire.PMID
	for _, n := range names {
		pmids = append(pmids, b.pmid(n))
	}
	b.ask(func(s pmda.Session) { // when it has looked
		for i := 0; i < 6; i += 2 {
			must(t, os.Truncate(filepath.Join(b.dir, fmt.Sprint("f", i)), 0))
		}
		must(t, s.Fetch(pmids, nil, &b.result))
		pdu, err := b.result.Finish()
		r := reply(t, pdu, err, &pcpwire.Result{})
		got := ""
		var gotSb247 strings.Builder
		for i := range r.Sets {
			gotSb247.WriteString(strconv.Itoa(int(r.Sets[i].NumVal)))
		}
		got += gotSb247.String()
		equal(t, "numbers of values", got, "010101")
	})
	equal(t, "after", b.all(nil, names...), " | 1 |  | 3 |  | 5")
	if b.values("mmv.control.faults") == "0" {
		t.Error("no faults are counted")
	}
	b.put("f0", one(7))
	equal(t, "with one made anew", b.all(nil, names...), "7 | 1 |  | 3 |  | 5")
}

// A writer truncates its file, extends it and fills it with another layout and
// the same generation, again and again. No value is ever another metric's.
func TestRewritingWriter(t *testing.T) {
	const items = 40
	value := func(item uint32, inst int32) int64 { return int64(item)<<32 | int64(inst+1)<<16 | 0x55 }
	layout := func(seed int) []byte {
		img := mmvimage.New(1).Cluster(5).Generation(42)
		img.InDom(1, "", "", insts("0:a", "1:b", "2:c")[seed%2:]...)
		for i := range items {
			item := uint32((i*7+seed*11)%items + 1)
			if item%4 == 0 {
				m := many(fmt.Sprint("m", item), item, 1)
				for inst := int32(seed % 2); inst < 3; inst++ {
					m.Values = append(m.Values, mmvimage.Int(value(item, inst)))
				}
				img.Metric(m)
			} else {
				img.Metric(metric(fmt.Sprint("m", item), item, value(item, -1)))
			}
		}
		return img.Build()
	}
	b := newBox(t, func(o *exporter.Options) { o.FileMetrics = exporter.FileMetricsOff })
	b.put("still", mmvimage.New(1).Cluster(6).Metric(metric("m", 1, 7)))
	path := filepath.Join(b.dir, "f")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close() //nolint:errcheck // a test's
	b.start()

	var images [][]byte
	for seed := range 3 {
		images = append(images, layout(seed))
		clear(images[seed][mmvimage.HdrG2 : mmvimage.HdrG2+8])
	}
	var stop atomic.Bool
	written := make(chan int, 1)
	go func() {
		n := 0
		for ; !stop.Load(); n++ {
			data := images[n%len(images)]
			g2 := data[mmvimage.HdrG1 : mmvimage.HdrG1+8]
			_ = f.Truncate(0)
			_ = f.Truncate(int64(len(data)))
			_, _ = f.WriteAt(data, 0)
			_, _ = f.WriteAt(g2, mmvimage.HdrG2)
			if n%2 == 0 {
				time.Sleep(50 * time.Microsecond) // let it be read, too
			}
		}
		written <- n
	}()
	var pmids []pcpwire.PMID
	for i := range uint32(items) {
		pmids = append(pmids, pcpwire.NewPMID(domain, 5, i+1))
	}
	pmids = append(pmids, pcpwire.NewPMID(domain, 6, 1))
	fetches := 200_000
	if testing.Short() || raceEnabled {
		fetches = 5000
	}
	wrong, with := 0, 0
	p := &pcpwire.Result{}
	for i := 0; i < fetches && wrong < 5; i++ {
		b.s.Begin()
		must(t, b.s.Fetch(pmids, nil, &b.result))
		pdu, err := b.result.Finish()
		b.s.End()
		b.s.After()
		reply(t, pdu, err, p)
		for k := range p.Sets {
			set := &p.Sets[k]
			for v := range set.Values {
				a, err := set.Values[v].Extract(set.Format, pcpwire.TypeI64)
				want := value(set.PMID.Item(), set.Values[v].Inst)
				if set.PMID.Cluster() == 6 {
					want = 7
				}
				if err != nil || a.I64() != want {
					t.Errorf("fetch %d: %v instance %d is %x, not %x (%v)", i, set.PMID, set.Values[v].Inst, a.I64(), want, err)
					wrong++
				}
			}
		}
		if p.Sets[0].NumVal > 0 {
			with++
		}
		if p.Sets[items].NumVal != 1 {
			t.Errorf("fetch %d: the other file has no value", i)
			wrong++
		}
	}
	stop.Store(true)
	n := <-written
	t.Logf("%d fetches, %d of them with values, beside %d rewrites", fetches, with, n)
	if with == 0 || n < 10 {
		t.Error("nothing was tried")
	}
}

// A reply with a value of a file that was rewritten after the request began tells of
// the change itself, and not the next one.
func TestChangeToldWithIt(t *testing.T) {
	b := newBox(t)
	b.put("f", mmvimage.New(1).Cluster(5).Metric(metric("old", 1, 1)))
	b.start()
	was := b.look()
	now := b.ask(func(s pmda.Session) {
		must(t, rewrite(filepath.Join(b.dir, "f"), mmvimage.New(1).Cluster(5).Metric(metric("other", 1, 77))))
		must(t, s.Fetch([]pcpwire.PMID{pcpwire.NewPMID(domain, 5, 1)}, nil, &b.result))
	})
	pdu, err := b.result.Finish()
	equal(t, "value", b.show(&reply(t, pdu, err, &pcpwire.Result{}).Sets[0]), "77")
	equal(t, "names have changed", now.Names != was.Names, true)
	equal(t, "in the next reply again", b.look(), now)
}
