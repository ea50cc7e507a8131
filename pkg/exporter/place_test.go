package exporter_test

import (
	"fmt"
	"testing"

	"pmdammv/test/mmvimage"
)

// sharing is a file that asks for cluster 5 and shares its names with others.
func sharing(metrics ...mmvimage.Metric) *mmvimage.Image {
	img := mmvimage.New(1).Cluster(5).Flags(mmvimage.NoPrefix)
	for _, m := range metrics {
		img.Metric(m)
	}
	return img
}

// Of two files that share a cluster the older one gets other metrics: what the other
// one has, which has not changed, stays; also over a restart.
func TestOlderChanges(t *testing.T) {
	b := newBox(t).keep()
	b.put("a", sharing(metric("m", 1, 1), metric("x", 2, 1)))
	b.start()
	b.put("b", sharing(metric("m", 1, 2), metric("x", 2, 2)))
	equal(t, "both", b.pmids("mmv.m", "mmv.x", "mmv.y"), "5.1 5.2 -")
	b.put("a", sharing(metric("m", 1, 1), metric("y", 2, 1)))
	equal(t, "the older one has changed", b.pmids("mmv.m", "mmv.x", "mmv.y"), "5.1 5.2 -")
	b.restart()
	equal(t, "after a restart", b.pmids("mmv.m", "mmv.x", "mmv.y"), "5.1 5.2 -")
}

// The older one goes, so that the other has the number, and comes again.
func TestOlderReturns(t *testing.T) {
	b := newBox(t).keep()
	older := sharing(metric("m", 1, 1), metric("x", 2, 1))
	b.put("a", older)
	b.start()
	b.put("b", sharing(metric("m", 1, 2), metric("y", 2, 2)))
	equal(t, "both", b.pmids("mmv.m", "mmv.x", "mmv.y"), "5.1 5.2 -")
	b.remove("a")
	equal(t, "without the older one", b.pmids("mmv.m", "mmv.x", "mmv.y"), "5.1 - 5.2")
	b.put("a", older)
	equal(t, "with it again", b.pmids("mmv.m", "mmv.x", "mmv.y"), "5.1 - 5.2")
	b.restart()
	equal(t, "after a restart", b.pmids("mmv.m", "mmv.x", "mmv.y"), "5.1 - 5.2")
}

// The older one changes while no agent runs, and shares nothing with the other any
// more: it moves, and the metrics of both are there.
func TestOlderChangesWhileDown(t *testing.T) {
	b := newBox(t).keep()
	b.put("a", sharing(metric("m", 1, 1)))
	b.start()
	b.put("b", sharing(metric("m", 1, 2), metric("n", 2, 2)))
	equal(t, "both", b.pmids("mmv.m", "mmv.n"), "5.1 5.2")
	b.stop()
	b.put("a", sharing(metric("p", 1, 1), metric("q", 2, 1)))
	b.start()
	equal(t, "changed", b.pmids("mmv.m", "mmv.n", "mmv.p", "mmv.q"), "5.1 5.2 1.1 1.2")
	b.restart()
	equal(t, "after a restart", b.pmids("mmv.m", "mmv.n", "mmv.p", "mmv.q"), "5.1 5.2 1.1 1.2")
}

// The older one gives another name to an instance that both have.
func TestOlderRenamesInstance(t *testing.T) {
	image := func(name string) *mmvimage.Image {
		return sharing(many("m", 1, 1, 7)).InDom(1, "", "", insts("1:"+name)...)
	}
	b := newBox(t).keep()
	b.put("a", image("x"))
	b.start()
	b.put("b", image("x"))
	equal(t, "instances of both", b.instances(b.desc("mmv.m").InDom), "1:x")
	b.put("a", image("z"))
	equal(t, "instances", b.instances(b.desc("mmv.m").InDom), "1:x")
	b.restart()
	equal(t, "after a restart", b.instances(b.desc("mmv.m").InDom), "1:x")
}

// A thousand files of one cluster, each of which agrees with the next one only, and
// differs from all.
func TestThousandInAChain(t *testing.T) {
	const n = 1000
	b := newBox(t)
	for i := range n {
		p := (n - i) % n // the first by name is the first of the chain, then they come from its end
		m := []mmvimage.Metric{metric(fmt.Sprint("own", p), 1022, 1), metric(fmt.Sprint("link", p), uint32(p), 1)}
		if p > 0 {
			m = append(m, metric(fmt.Sprint("link", p-1), uint32(p-1), 1))
		}
		b.put(fmt.Sprintf("f%03d", i), sharing(m...))
	}
	b.start()
	equal(t, "numbers", b.pmids("mmv.own0", "mmv.own1", "mmv.link0", "mmv.link500", "mmv.link999"), "5.1022 - 5.0 5.500 5.999")
}
