package exporter_test

import (
	"errors"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

const (
	labelInDom = pcpwire.LabelInDom
	labelItem  = pcpwire.LabelItem
	labelInst  = pcpwire.LabelInstances
)

// Labels are found whatever cluster a file gets: its own choice, one from the
// agent, or one in the place of its own.
func TestLabels(t *testing.T) {
	file := func(cluster int32) *mmvimage.Image {
		return mmvimage.New(3).Cluster(cluster).InDom(1, "", "", insts("0:x", "1:y")...).Metric(many("m", 1, 1, 5, 6)).Metric(metric("n", 2, 7)).
			Label(mmvimage.LabelCluster, uint32(cluster), -1, `{"c":1}`).Label(mmvimage.LabelCluster|mmvimage.LabelOptional, uint32(cluster), -1, `{"o":1}`).
			Label(mmvimage.LabelItem, 1, -1, `{"i":1}`).Label(mmvimage.LabelInDom, 1, -1, `{"d":1}`).
			Label(mmvimage.LabelInstances, 1, 1, `{"y":1}`).Label(mmvimage.LabelInstances, 1, 1, `{"z":1}`).
			Label(mmvimage.LabelItem, 3, -1, `{"none":1}`).Label(mmvimage.LabelInDom, 2, -1, `{"none":1}`).Label(mmvimage.LabelInstances, 1, 7, `{"none":1}`)
	}
	b := newBox(t)
	b.put("auto", file(0))
	b.put("high", file(2986))
	b.put("low", file(5))
	b.put("moved", asking(5, "other").Metric(metric("m", 9, 1)))
	b.put("moved", mmvimage.New(3).Cluster(5).InDom(1, "", "", insts("0:x")...).Metric(many("other", 1, 1, 5)).
		Label(mmvimage.LabelCluster, 5, -1, `{"moved":5}`))
	b.start()
	for _, f := range []string{"auto", "high", "low"} {
		m, n := b.pmid("mmv."+f+".m"), b.pmid("mmv."+f+".n")
		d := uint32(b.desc("mmv." + f + ".m").InDom)
		cluster := uint32(m) &^ 1023
		equal(t, f+" cluster", b.labels(pcpwire.LabelCluster, cluster, -1), `{"c":1} {"o":1}?`)
		equal(t, f+" item", b.labels(labelItem, uint32(m), -1), `{"i":1}`)
		equal(t, f+" other item", b.labels(labelItem, uint32(n), -1), "")
		equal(t, f+" unknown item", b.labels(labelItem, cluster|3, -1), "")
		equal(t, f+" indom", b.labels(labelInDom, d, -1), `{"d":1}`)
		equal(t, f+" instance", b.labels(labelInst, d, 0), "")
		equal(t, f+" other instance", b.labels(labelInst, d, 1), `{"y":1} {"z":1}`)
	}
	p := b.pmid("mmv.moved.other")
	if p.Cluster() == 5 {
		t.Fatal("not moved")
	}
	equal(t, "moved", b.labels(pcpwire.LabelCluster, uint32(p), -1), `{"moved":5}`)
	equal(t, "domain", b.labels(pcpwire.LabelDomain, domain, -1), "") // pmda has those
	equal(t, "unknown cluster", b.labels(pcpwire.LabelCluster, uint32(pcpwire.NewPMID(domain, 99, 0)), -1), "")
	equal(t, "agent's own", b.labels(pcpwire.LabelCluster, uint32(pcpwire.NewPMID(domain, 0, 0)), -1), "")
	equal(t, "unknown indom", b.labels(labelInDom, 12345, -1), "")
}

// Of files in one cluster, only those have labels for something whose it is.
func TestLabelsOfSeveralFiles(t *testing.T) {
	file := func(name, inst string, more ...mmvimage.Metric) *mmvimage.Image {
		img := mmvimage.New(3).Cluster(5).Flags(mmvimage.NoPrefix).InDom(1, "", "", insts(inst)...).Metric(many("both", 1, 1, 5)).
			Label(mmvimage.LabelCluster, 5, -1, `{"c":"`+name+`"}`).Label(mmvimage.LabelItem, 1, -1, `{"i":"`+name+`"}`).
			Label(mmvimage.LabelItem, 2, -1, `{"two":"`+name+`"}`).Label(mmvimage.LabelInDom, 1, -1, `{"d":"`+name+`"}`).
			Label(mmvimage.LabelInstances, 1, 0, `{"inst":"`+name+`"}`)
		for _, m := range more {
			img.Metric(m)
		}
		return img
	}
	b := newBox(t)
	b.put("a", file("a", "0:x", metric("two", 2, 1)))
	b.put("b", file("b", "0:x", metric("zwei", 2, 1)))
	b.put("c", file("c", "0:other"))
	b.start()
	p, d := uint32(b.pmid("mmv.both")), uint32(b.desc("mmv.both").InDom)
	equal(t, "cluster", b.labels(pcpwire.LabelCluster, p&^1023, -1), `{"c":"a"} {"c":"b"} {"c":"c"}`)
	equal(t, "item", b.labels(labelItem, p, -1), `{"i":"a"} {"i":"b"} {"i":"c"}`)
	equal(t, "the item that one file has", b.labels(labelItem, uint32(b.pmid("mmv.two")), -1), `{"two":"a"}`)
	equal(t, "indom", b.labels(labelInDom, d, -1), `{"d":"a"} {"d":"b"} {"d":"c"}`)
	equal(t, "instance, not that of another name", b.labels(labelInst, d, 0), `{"inst":"a"} {"inst":"b"}`)
}

// A change of labels is told when there is one.
func TestLabelChanges(t *testing.T) {
	file := func(labels ...string) *mmvimage.Image {
		img := mmvimage.New(3).Cluster(5).Metric(metric("m", 1, 1))
		for _, l := range labels {
			img.Label(mmvimage.LabelItem, 1, -1, l)
		}
		return img
	}
	b := newBox(t)
	b.put("plain", one(1))
	b.start()
	last := b.look()
	step := func(what string, names, labels bool) {
		t.Helper()
		now := b.look()
		equal(t, what+": names", now.Names != last.Names, names)
		equal(t, what+": labels", now.Labels != last.Labels, labels)
		equal(t, what+": again", b.look(), now)
		last = now
	}
	b.put("f", file(`{"a":1}`))
	step("metrics with labels", true, true)
	b.put("f", file(`{"a":1}`).Generation(9))
	step("the same", false, false)
	b.put("f", file(`{"a":2}`))
	step("another label", false, true)
	b.put("f", file(`{"a":2}`).Label(mmvimage.LabelItem, 7, -1, `{"b":1}`).Label(mmvimage.LabelInDom, 7, -1, `{"b":1}`))
	step("a label of nothing", false, false)
	b.put("f", file(`{"a":2}`, `{"b":1}`))
	step("one more", false, true)
	b.put("g", one(2))
	step("metrics without", true, false)
	b.put("f", file())
	step("none", false, true)
	b.put("f", file().Metric(metric("n", 2, 1)))
	step("another metric without", true, false)
	b.remove("f", "g")
	step("metrics without gone", true, false)
}

func TestTexts(t *testing.T) {
	m := metric("m", 1, 1)
	m.Short, m.Help = "one line", "more of it"
	in := many("in", 2, 1, 1)
	in.Help = "only help"
	b := newBox(t)
	b.put("f", mmvimage.New(1).Cluster(3).InDom(1, "short", "long", insts("0:x")...).InDom(2, "", "help", insts("0:x")...).
		Metric(m).Metric(in).Metric(many("other", 3, 2, 1)).Metric(metric("none", 4, 1)))
	b.put("w1", worker(9, many("both", 1, 1, 1)).InDom(1, "", "", insts("0:x")...))
	m = many("both", 1, 1, 1)
	m.Short = "second"
	b.put("w2", worker(9, m).InDom(1, "of w2", "", insts("1:y")...))
	b.start()
	const line, help = pcpwire.TextOneLine, pcpwire.TextHelp
	pmid := func(n string) uint32 { return uint32(b.pmid("mmv." + n)) }
	indom := func(n string) uint32 { return uint32(b.desc("mmv." + n).InDom) }
	tests := []struct {
		name  string
		ident uint32
		kind  pcpwire.TextKind
		want  string
		err   error
	}{
		{"line", pmid("f.m"), pcpwire.TextPMID | line, "one line", nil},
		{"help", pmid("f.m"), pcpwire.TextPMID | help, "more of it", nil},
		{"no line", pmid("f.in"), pcpwire.TextPMID | line, "", pcpwire.ErrText},
		{"only help", pmid("f.in"), pcpwire.TextPMID | help, "only help", nil},
		{"none", pmid("f.none"), pcpwire.TextPMID | help, "", pcpwire.ErrText},
		{"unknown", pmid("f.m") + 500, pcpwire.TextPMID | help, "", pcpwire.ErrPMID},
		{"indom line", indom("f.in"), pcpwire.TextInDom | line, "short", nil},
		{"indom help", indom("f.in"), pcpwire.TextInDom | help, "long", nil},
		{"no indom line", indom("f.other"), pcpwire.TextInDom | line, "", pcpwire.ErrText},
		{"unknown indom", indom("f.in") + 500, pcpwire.TextInDom | line, "", pcpwire.ErrInDom},
		{"shared metric", pmid("both"), pcpwire.TextPMID | line, "", pcpwire.ErrText}, // the first file's
		{"shared indom", indom("both"), pcpwire.TextInDom | line, "of w2", nil},
		{"shared indom help", indom("both"), pcpwire.TextInDom | help, "", pcpwire.ErrText},
	}
	for _, tt := range tests {
		got, err := b.text(tt.ident, tt.kind)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}
