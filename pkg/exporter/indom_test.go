package exporter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

func TestInstancesOfSeveralFiles(t *testing.T) {
	file := func(inst string, v int64) *mmvimage.Image {
		return worker(3, many("m", 1, 1, v), many("n", 2, 1, v+1)).InDom(1, "", "", insts(inst)...)
	}
	b := newBox(t).keep()
	b.put("a", file("0:p0", 10))
	b.put("c", file("7:p7", 30))
	b.start()
	b.look()
	b.put("b", file("1:p1", 20))
	d := b.desc("mmv.m").InDom
	equal(t, "number", d, pcpwire.NewInDom(domain, 3<<11|1))
	equal(t, "instances", b.instances(d), "0:p0 1:p1 7:p7")
	equal(t, "values", b.values("mmv.m"), "0=10 1=20 7=30")
	b.put("b", file("7:p7", 40))
	equal(t, "the first by name", b.values("mmv.n"), "0=11 7=41")
	equal(t, "instances, one twice", b.instances(d), "0:p0 7:p7")
	equal(t, "status", b.statuses()["c"], `loaded: of 2 metrics values of "b" are shown instead`)

	// One id, two names: of a shared metric that instance is left out.
	b.told()
	b.put("b", file("7:other", 50))
	equal(t, "left out", b.values("mmv.m"), "0=10 7=30")
	equal(t, "instances, one with two names", b.instances(d), "0:p0 7:p7")
	equal(t, "status", b.statuses()["b"], `loaded: 1 instance of shared metrics left out: 7 of indom 1 is "other" here and "p7" in "c"`)
	for range 3 {
		b.look()
	}
	told := b.told()
	if n := len(slices.DeleteFunc(told, func(s string) bool { return !strings.Contains(s, "other") })); n != 1 {
		t.Errorf("told %d times", n)
	}
	b.remove("c")
	equal(t, "with the older file gone", b.values("mmv.m"), "0=10 7=50")
	equal(t, "with the older file gone", b.instances(d), "0:p0 7:other")
}

// Of metrics that are not shared, the later file's have an indom of their own,
// for good.
func TestOneInstanceTwoNames(t *testing.T) {
	file := func(inst string) *mmvimage.Image {
		return mmvimage.New(1).Cluster(3).InDom(1, "", "", insts(inst)...)
	}
	b := newBox(t).keep()
	b.put("b", file("0:x").Metric(many("m", 1, 1, 10)))
	b.start()
	b.put("a", file("0:y").Metric(many("m", 2, 1, 20)))
	canonical := pcpwire.NewInDom(domain, 3<<11|1)
	equal(t, "PMIDs", b.pmids("mmv.a.m", "mmv.b.m"), "3.2 3.1")
	equal(t, "the first one's", b.desc("mmv.b.m").InDom, canonical)
	own := b.desc("mmv.a.m").InDom
	check := func(when string) {
		t.Helper()
		equal(t, when, b.desc("mmv.a.m").InDom, own)
		equal(t, when, b.instances(own), "0:y")
		equal(t, when, b.values("mmv.a.m"), "0=20")
	}
	if own == canonical {
		t.Error("one indom has two meanings of one instance")
	}
	check("with both")
	b.restart()
	check("after a restart")
	equal(t, "the first one's after a restart", b.instances(canonical), "0:x")
	b.remove("b")
	check("alone")
	b.restart()
	check("alone after a restart")
	if st := b.statuses(); len(st) != 0 {
		t.Errorf("all is exported: %q", st)
	}
}

// Numbers of indoms are PCP's, except where those of two fall together.
func TestInDomNumbers(t *testing.T) {
	file := func(cluster int32, serials ...uint32) *mmvimage.Image {
		img := mmvimage.New(2).Cluster(cluster)
		for i, s := range serials {
			img.InDom(s, "", "", insts(fmt.Sprintf("0:s%d", s))...).Metric(many(fmt.Sprintf("m%d", i), uint32(i+1), int32(s), int64(s)))
		}
		return img
	}
	b := newBox(t).keep()
	b.put("a", file(1, 5, 0x805))                           // fall together, in one file
	b.put("b", file(2049, 5))                               // 2048 above
	b.put("c", file(3, 1, 0x7ffffff0))                      // bits beyond 22
	b.put("d", file(2048, 0x400000, 1))                     // would be 0, the indom of files
	b.put("e", mmvimage.New(2).Cluster(4).InDom(9, "", "")) // referred to by no metric
	b.start()
	numbers := func() (list []uint32) {
		for _, n := range []string{"a.m0", "a.m1", "b.m0", "c.m0", "c.m1", "d.m0", "d.m1"} {
			d := b.desc("mmv." + n)
			list = append(list, d.InDom.Serial())
			want := "0:s" + strings.TrimPrefix(b.values("mmv."+n), "0=")
			equal(t, "instances of "+n, b.instances(d.InDom), want)
		}
		return list
	}
	first := numbers()
	equal(t, "canonical", fmt.Sprint(first[0], first[3], first[4]), fmt.Sprint(1<<11|5, 3<<11|1, 1<<22-16))
	seen := map[uint32]bool{0: true}
	for i, n := range first {
		if seen[n] {
			t.Errorf("number %d (%d) twice: %d", i, n, first)
		}
		seen[n] = true
	}
	equal(t, "without a metric", b.instances(pcpwire.NewInDom(domain, 4<<11|9)), "")
	b.restart()
	equal(t, "after a restart", fmt.Sprint(numbers()), fmt.Sprint(first))
	b.remove("a")
	b.look()
	b.stop()
	b.start()
	equal(t, "b with a gone", b.desc("mmv.b.m0").InDom.Serial(), first[2])
	b.put("a", file(1, 0x805, 5)) // in another order
	equal(t, "a back", fmt.Sprint(b.desc("mmv.a.m1").InDom.Serial(), b.desc("mmv.a.m0").InDom.Serial()), fmt.Sprint(first[0], first[1]))
}

// A file whose instances have not changed keeps its indom, and one whose have gets
// another.
func TestChangedInstances(t *testing.T) {
	for what, n := range map[string]int{"small": 10, "large": 5000} {
		t.Run(what, func(t *testing.T) {
			b := newBox(t)
			b.put("f", instances("x", n, "m", 1))
			b.start()
			b.put("g", instances("x", n, "n", 2))
			was := b.desc("mmv.g.n").InDom
			equal(t, "indom of both", b.desc("mmv.f.m").InDom, was)
			b.put("f", instances("y", n, "m", 1))
			equal(t, "indom of the one that has not changed", b.desc("mmv.g.n").InDom, was)
			if b.desc("mmv.f.m").InDom == was {
				t.Error("the one that has changed still has it, too")
			}
		})
	}
}
