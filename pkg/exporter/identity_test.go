package exporter_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// asking is a file that asks for a cluster and has the metric m, item 1, or the
// one of that name.
func asking(cluster int32, name ...string) *mmvimage.Image {
	return mmvimage.New(1).Cluster(cluster).Metric(metric(append(name, "m")[0], 1, int64(cluster)))
}

// clusters returns the clusters of files with the metric m, "-" for none.
func (b *box) clusters(files ...string) string {
	b.Helper()
	var out []string
	for _, f := range files {
		c := "-"
		if p, err := b.lookup("mmv." + f + ".m"); err == nil {
			c = strconv.FormatUint(uint64(p.Cluster()), 10)
		}
		out = append(out, c)
	}
	return strings.Join(out, " ")
}

// At the first start the numbers are those that PCP's agent gives, by the order
// of names, except where those would clash.
func TestFirstStart(t *testing.T) {
	tests := []struct {
		name  string
		files string // name:cluster asked for
		want  string
	}{
		{"any", "a:0 b:0 c:0", "1 2 3"},
		{"explicit", "a:7 b:4095 c:1", "7 4095 1"},
		{"explicit before", "a:1 b:0 c:2 d:0", "1 3 2 4"},
		{"explicit after, far", "a:0 b:9 c:0", "1 9 2"},
		{"explicit after, where PCP's would clash", "a:0 b:1 c:0", "2 1 3"},
		{"gaps are filled", "a:1 b:3 c:0 d:0 e:0", "1 3 2 4 5"},
		{"the same one", "a:5 b:5 c:0", "5 2 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			var names []string
			for f := range strings.FieldsSeq(tt.files) {
				var cluster int32
				name, n, _ := strings.Cut(f, ":")
				if _, err := fmt.Sscan(n, &cluster); err != nil {
					t.Fatal(err)
				}
				names = append(names, name)
				b.put(name, asking(cluster, "m"))
			}
			b.start()
			equal(t, "clusters", b.clusters(names...), tt.want)
		})
	}
}

func TestNumbersStay(t *testing.T) {
	b := newBox(t).keep()
	b.put("b", one(1))
	b.put("e", asking(2))
	b.start()
	equal(t, "at first", b.clusters("b", "e"), "1 2")
	b.put("a", one(2))
	equal(t, "after one before them has come", b.clusters("a", "b", "e"), "3 1 2")
	b.restart()
	equal(t, "after a restart", b.clusters("a", "b", "e"), "3 1 2")
	b.remove("b")
	b.look()
	b.put("c", one(3))
	equal(t, "with b gone", b.clusters("a", "b", "c", "e"), "3 - 4 2")
	b.restart()
	b.put("b", one(4))
	equal(t, "with b back", b.clusters("a", "b", "c", "e"), "3 1 4 2")
	b.put("b", one(5)) // published again
	equal(t, "b", b.values("mmv.b.m"), "5")
	equal(t, "with b published again", b.clusters("a", "b", "c", "e"), "3 1 4 2")
	b.remove("a", "b", "c", "e")
	b.restart()
	for _, n := range []string{"e", "d", "c", "b", "a"} {
		b.put(n, map[bool]*mmvimage.Image{true: asking(2), false: one(1)}[n == "e"])
		b.look()
	}
	equal(t, "after all came back in another order", b.clusters("a", "b", "c", "d", "e"), "3 1 4 5 2")
}

// A file that comes to ask for another number gets that.
func TestAskingForAnother(t *testing.T) {
	b := newBox(t).keep()
	b.put("a", one(1))
	b.put("x", asking(42, "other"))
	b.put("y", asking(42))
	b.start()
	equal(t, "at first", b.clusters("a", "y"), "1 2")
	b.put("a", asking(7))
	b.put("b", one(1))
	equal(t, "explicit now", b.clusters("a", "b"), "7 1")
	b.put("a", one(2))
	equal(t, "any again", b.clusters("a", "b"), "3 1")
	b.put("y", one(3)) // it has had to take another one anyway
	equal(t, "any instead of one that it could not have", b.clusters("y"), "2")
	b.restart()
	equal(t, "after a restart", b.clusters("a", "b", "y"), "3 1 2")
}

// A name that asks for a cluster keeps it free when its file is gone, too.
func TestAskedForIsNotGivenOut(t *testing.T) {
	b := newBox(t).keep()
	b.put("a", asking(1))
	b.put("b", asking(3))
	b.start()
	b.remove("a", "b")
	b.restart()
	b.put("c", one(1))
	b.put("d", one(1))
	equal(t, "clusters", b.clusters("c", "d"), "2 4")
}

func TestExplicitBeatsAbsentAutomatic(t *testing.T) {
	b := newBox(t).keep()
	b.put("auto", one(1))
	b.start()
	equal(t, "auto", b.clusters("auto"), "1")
	b.remove("auto")
	b.look()
	b.put("explicit", asking(1))
	equal(t, "explicit", b.clusters("explicit"), "1")
	b.put("auto", one(1))
	equal(t, "with both", b.clusters("auto", "explicit"), "2 1")
	b.restart()
	equal(t, "after a restart", b.clusters("auto", "explicit"), "2 1")
}

// A number whose file is present is never taken, not even at a start.
func TestPresentKeepsItsNumber(t *testing.T) {
	b := newBox(t).keep()
	b.put("auto", one(1))
	b.start()
	b.told()
	b.put("explicit", asking(1))
	equal(t, "clusters", b.clusters("auto", "explicit"), "1 2")
	equal(t, "told", strings.Join(b.told(), "\n"),
		"w explicit: cluster 1 is another file's, with other metrics: 2 is used instead\ni explicit: loaded")
	b.stop()
	b.put("later", asking(2))
	b.start()
	equal(t, "after a start with one more that asks", b.clusters("auto", "explicit", "later"), "1 2 3")
	b.remove("auto")
	b.look()
	equal(t, "with the owner gone", b.clusters("auto", "explicit", "later"), "- 2 3")
	b.restart()
	equal(t, "at a start with the owner gone", b.clusters("auto", "explicit", "later"), "- 1 2")
}

func TestConflictMovesTheLaterFile(t *testing.T) {
	b := newBox(t).keep()
	b.put("b", asking(42))
	b.start()
	b.put("a", mmvimage.New(1).Cluster(42).Metric(metric("m", 9, 1)).Metric(metric("other", 1, 2)))
	equal(t, "the later one", b.pmids("mmv.b.m", "mmv.a.m", "mmv.a.other"), "42.1 1.9 1.1")
	if st := b.statuses(); len(st) != 0 {
		t.Errorf("both are loaded: %q", st)
	}
	b.restart()
	equal(t, "after a restart", b.pmids("mmv.b.m", "mmv.a.m"), "42.1 1.9")
	b.remove("b")
	b.look()
	equal(t, "with the owner gone", b.pmids("mmv.a.m"), "1.9")
	b.put("a", mmvimage.New(1).Cluster(42).Metric(metric("m", 9, 1)))
	equal(t, "published again with the owner gone", b.pmids("mmv.a.m"), "1.9")
	b.told()
	b.restart()
	equal(t, "at a start with the owner gone", b.pmids("mmv.a.m"), "42.9")
	if !slices.Contains(b.told(), "i a: cluster 42 has become free and is used instead of 1") {
		t.Error("not told that it has gone back")
	}
	b.put("b", asking(42))
	b.put("c", asking(42))
	equal(t, "one that fits, and one that does not", b.pmids("mmv.a.m", "mmv.b.m", "mmv.c.m"), "42.9 42.1 1.1")
}

// Who was there while the other was gone has the older right.
func TestReturnAfterAnotherHasCome(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(strconv.FormatBool(restart), func(t *testing.T) {
			b := newBox(t).keep()
			b.put("a", asking(42))
			b.start()
			b.remove("a")
			b.look()
			b.put("b", asking(42))
			equal(t, "b", b.pmids("mmv.b.m"), "42.1")
			if restart {
				b.stop()
				b.put("a", asking(42))
				b.start()
			}
			b.put("a", asking(42))
			equal(t, "a is back", b.pmids("mmv.a.m", "mmv.b.m"), "1.1 42.1")
			b.restart()
			equal(t, "after a restart", b.pmids("mmv.a.m", "mmv.b.m"), "1.1 42.1")
		})
	}
}

func worker(cluster int32, extra ...mmvimage.Metric) *mmvimage.Image {
	img := mmvimage.New(1).Cluster(cluster).Flags(mmvimage.NoPrefix)
	for _, m := range extra {
		img.Metric(m)
	}
	return img
}

// Metrics that agree are one. Those that differ are the older file's if others
// agree.
func TestConflictPerMetric(t *testing.T) {
	double := metric("lat", 2, 0)
	double.Type = mmvimage.Double
	b := newBox(t).keep()
	b.put("w2", worker(50, metric("reqs", 1, 10), metric("lat", 2, 7), metric("two", 5, 2)).InDom(1, "", ""))
	b.start()
	b.told()
	b.put("w1", worker(50, metric("reqs", 1, 20), double, metric("one", 4, 1)))
	equal(t, "PMIDs", b.pmids("mmv.reqs", "mmv.lat", "mmv.one", "mmv.two"), "50.1 50.2 50.4 50.5")
	equal(t, "the older file's", b.values("mmv.lat"), "7")
	equal(t, "the first by name", b.values("mmv.reqs"), "20")
	equal(t, "status", b.statuses()["w1"], `loaded, 1 metric not exported: metric[1] lat: its PMID is another metric's: item 2 is lat of "w2"`)
	equal(t, "status of the other", b.statuses()["w2"], `loaded: of 1 metric values of "w1" are shown instead`)
	equal(t, "told", strings.Join(b.told(), "\n"), strings.Join([]string{
		`w w1: loaded, 1 metric not exported: metric[1] lat: its PMID is another metric's: item 2 is lat of "w2"`,
		`w : cluster 50: several files have values of one metric and instance, like "w1" and "w2"; that of the first by name is shown`,
	}, "\n"))
	b.restart()
	equal(t, "after a restart", b.values("mmv.lat"), "7")
	b.remove("w2")
	equal(t, "with the older file gone", b.pmids("mmv.reqs", "mmv.lat", "mmv.one", "mmv.two"), "50.1 50.2 50.4 -")
	equal(t, "type", b.desc("mmv.lat").Type, pcpwire.TypeDouble)
}

// The parts of a descriptor that make two metrics different ones.
func TestSameMetric(t *testing.T) {
	base := many("m", 1, 1, 5)
	tests := []struct {
		name string
		b    func(*mmvimage.Metric)
		same bool
	}{
		{"equal", func(*mmvimage.Metric) {}, true},
		{"help", func(m *mmvimage.Metric) { m.Short, m.Help = "other", "texts" }, true},
		{"type", func(m *mmvimage.Metric) { m.Type = mmvimage.U64 }, false},
		{"semantics", func(m *mmvimage.Metric) { m.Sem = mmvimage.Counter }, false},
		{"units", func(m *mmvimage.Metric) { m.Units = 1 << 20 }, false},
		{"indom", func(m *mmvimage.Metric) { m.InDom = 2 }, false},
		{"no indom", func(m *mmvimage.Metric) { m.InDom = 0 }, false},
		{"name", func(m *mmvimage.Metric) { m.Name = "n" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			file := func(m mmvimage.Metric, inst string) *mmvimage.Image {
				return worker(3, m).InDom(1, "", "", insts(inst)...).InDom(2, "", "", insts(inst)...)
			}
			other := base
			tt.b(&other)
			b.put("a", file(base, "0:x"))
			b.put("b", file(other, "1:y"))
			b.start()
			want := "0=5"
			if tt.same {
				want = "0=5 1=5"
			}
			equal(t, "values", b.values("mmv.m"), want)
			n := 1
			if !tt.same && other.Name != "m" {
				n = 2 // in a cluster of its own
			}
			equal(t, "names", len(b.names()), n)
		})
	}
}

// Instances of the indom of files stay as well.
func TestFileInstances(t *testing.T) {
	b := newBox(t, func(o *exporter.Options) { o.FileMetrics = exporter.FileMetricsAll }).keep()
	files := pcpwire.NewInDom(domain, 0)
	b.put("b", one(1))
	b.put("c", one(1))
	b.start()
	equal(t, "at first", b.instances(files), "0:b 1:c")
	b.put("a", one(1))
	b.look()
	b.write("d", []byte("junk, and more of it than a header has, of course"))
	b.look()
	equal(t, "with more", b.instances(files), "2:a 0:b 1:c 3:d")
	b.remove("b")
	b.restart()
	b.put("e", one(1))
	equal(t, "with one gone", b.instances(files), "2:a 1:c 3:d 4:e")
	b.put("b", one(1))
	equal(t, "with it back", b.instances(files), "2:a 0:b 1:c 3:d 4:e")
}

// When there is no number left, the owner that has been absent longest loses
// its own; one that is present never.
func TestNoNumberLeft(t *testing.T) {
	b := newBox(t)
	name := func(i int) string { return fmt.Sprintf("f%04d", i) }
	for i := range 4095 {
		b.put(name(i), one(int64(i)))
	}
	b.start()
	equal(t, "all", b.clusters(name(0), name(2000), name(4094)), "1 2001 4095")
	b.told()
	b.put("z", one(1))
	b.put("y", one(1))
	b.put("x", asking(7))
	equal(t, "one more", b.clusters("z", "y", "x"), "- - -")
	equal(t, "status", b.statuses()["z"], "rejected: no cluster number left")
	equal(t, "rejected", b.values("mmv.control.rejected"), "3")
	equal(t, "told", strings.Join(b.told(), "\n"), "w x: rejected: no cluster number left\nw y: rejected: no cluster number left\nw z: rejected: no cluster number left")
	b.remove(name(6))
	b.look()
	equal(t, "what it asked for", b.clusters("z", "y", "x"), "- - 7")
	b.remove(name(2000))
	b.look()
	b.remove(name(5))
	b.look()
	b.told()
	equal(t, "by name", b.clusters("z", "y", "x"), "6 2001 7")
	b.remove(name(7))
	b.look()
	b.remove(name(3000), name(3001))
	b.look()
	b.remove(name(8))
	b.look()
	b.put("k", one(1))
	equal(t, "the longest absent", b.clusters("k"), "8")
	b.put("l", one(1))
	equal(t, "the next", b.clusters("l"), "3001")
	b.put(name(8), one(1))
	equal(t, "those that are back in time keep theirs", b.clusters(name(8)), "9")
	b.put("m", one(1))
	equal(t, "the last", b.clusters("m"), "3002")
	b.put("n", one(1))
	equal(t, "no more", b.clusters("n"), "-")
	n := 0
	for _, line := range b.told() {
		if strings.Contains(line, "given to others") {
			n++
		}
	}
	equal(t, "times that it was told", n, 0) // it was before
}
