package exporter_test

import (
	"fmt"
	"testing"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// In the steady state a fetch allocates nothing.
func TestFetchAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	b := newBox(t, func(o *exporter.Options) { o.FileMetrics = exporter.FileMetricsAll })
	for i := range 20 {
		img := mmvimage.New(2).Cluster(int32(i+1)).InDom(1, "", "", insts("0:x", "1:y", "2:z")...).
			Metric(typed("text", 101, mmvimage.String, mmvimage.Text("some text"))).Metric(many("in", 102, 1, 1, 2, 3)).
			Metric(typed("elapsed", 103, mmvimage.Elapsed, mmvimage.Timed(1, -5))).Metric(typed("float", 104, mmvimage.Float, mmvimage.Float32(1)))
		for k := range 50 {
			img.Metric(metric(fmt.Sprint("m", k), uint32(k), 1))
		}
		b.put(fmt.Sprint("f", i), img)
	}
	for i := range 10 {
		b.put(fmt.Sprint("w", i), worker(50, many("shared", 1, 1, 5), metric("one", 2, 1)).InDom(1, "", "", insts(fmt.Sprintf("%d:w%d", i, i))...))
	}
	b.start()
	var all []pcpwire.PMID
	for _, n := range b.names() {
		all = append(all, b.pmid(n))
	}
	control := []pcpwire.PMID{b.pmid("mmv.control.files"), b.pmid("mmv.control.reloads"), b.pmid("mmv.control.faults")}
	in := b.desc("mmv.f3.in").InDom
	some := &pcpwire.Profile{InDoms: []pcpwire.ProfileInDom{{InDom: in, State: pcpwire.ProfileExclude, Insts: []int32{1}}}}
	some.Sort()
	tests := []struct {
		name    string
		pmids   []pcpwire.PMID
		profile *pcpwire.Profile
	}{
		{"one", all[:1], nil},
		{"all", all, nil},
		{"all, with a profile", all, some},
		{"nothing but unknown ones", []pcpwire.PMID{1, 2, 3}, nil},
		{"control metrics", control, nil},
	}
	for _, tt := range tests {
		n := testing.AllocsPerRun(50, func() {
			b.s.Begin()
			if err := b.s.Fetch(tt.pmids, tt.profile, &b.result); err != nil {
				t.Error(err)
			}
			if _, err := b.result.Finish(); err != nil {
				t.Error(err)
			}
			b.s.End()
			b.s.After()
		})
		if n > 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
}
