package exporter_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// A thousand workers that have the same metrics, each its own instances.
func TestThousandWorkers(t *testing.T) {
	b := newBox(t)
	for i := range 1000 {
		b.put(fmt.Sprintf("w%03d", i), ten(i).Cluster(7).Flags(mmvimage.NoPrefix))
	}
	b.start()
	equal(t, "names", len(b.names()), 10)
	set := b.fetch(nil, b.pmid("mmv.group0.metric0")).Sets[0]
	equal(t, "values", set.NumVal, 10000)
	for i := range set.Values {
		if set.Values[i].Inst != int32(i) {
			t.Fatalf("value %d is of instance %d", i, set.Values[i].Inst)
		}
	}
	equal(t, "problems", len(b.statuses()), 0)
	b.remove("w500")
	equal(t, "values with one gone", b.fetch(nil, b.pmid("mmv.group2.metric5")).Sets[0].NumVal, 9990)
	list := strings.Fields(strings.ReplaceAll(b.instances(b.desc("mmv.group0.metric0").InDom), "inst ", ""))
	equal(t, "instances", fmt.Sprintf("%d %s %s", len(list), list[0], list[9989]), "9990 0:0.0 9999:999.9")
}

// A thousand files with the same names, each in its own cluster: the first has
// them.
func TestThousandTaken(t *testing.T) {
	b := newBox(t)
	for i := range 1000 {
		b.put(fmt.Sprintf("w%03d", i), ten(i).Flags(mmvimage.NoPrefix))
	}
	b.start()
	equal(t, "names", len(b.names()), 10)
	st := b.statuses()
	equal(t, "problems", len(st), 999)
	if !strings.HasPrefix(st["w999"], `loaded, 10 metrics not exported: metric[0] group0.metric0: name "group0.metric0": name is taken: "group0.metric0" of "w000"; `) {
		t.Errorf("status %q", st["w999"])
	}
	b.remove("w000")
	equal(t, "names with the first gone", len(b.names()), 10)
	equal(t, "problems", len(b.statuses()), 998)
	equal(t, "cluster", b.pmid("mmv.group0.metric0").Cluster(), 2)
}

func TestManyEmptyInDoms(t *testing.T) {
	img := ten(0)
	for s := range uint32(400_000) {
		img.InDom(s+2, "", "")
	}
	b := newBox(t)
	b.put("f", img.Cluster(1))
	b.put("g", ten(1).Cluster(1).Metric(metric("other", 11, 5)))
	b.start()
	equal(t, "clusters", b.pmids("mmv.f.group0.metric0", "mmv.g.other"), "1.1 2.11")
	equal(t, "values", b.fetch(nil, b.pmid("mmv.f.group0.metric0")).Sets[0].NumVal, 10)
	equal(t, "an empty one", b.instances(pcpwire.NewInDom(domain, 1<<11|300)), "")
	b.put("g", ten(1).Cluster(1).Flags(mmvimage.NoPrefix).Metric(metric("other", 11, 5)))
	equal(t, "value", b.values("mmv.other"), "5")
}

func TestTenThousandFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("many files")
	}
	b := newBox(t, func(o *exporter.Options) { o.FileMetrics = exporter.FileMetricsOff })
	for i := range 10_000 {
		b.put(fmt.Sprintf("f%04d", i), worker(int32(i%4095+1), metric(fmt.Sprint("m", i), uint32(i/4095+1), int64(i))))
	}
	b.start()
	equal(t, "metrics", b.all(nil, "mmv.control.files", "mmv.control.metrics"), "10000 | 10000")
	names := b.names()
	equal(t, "names", len(names), 10_000)
	for _, i := range []int{0, 4094, 4095, 9999} {
		equal(t, "PMID", b.pmids(fmt.Sprint("mmv.m", i)), fmt.Sprintf("%d.%d", i%4095+1, i/4095+1))
		equal(t, "value", b.values(fmt.Sprint("mmv.m", i)), strconv.Itoa(i))
	}
}

// The two indoms of a large file change places in place, and nothing else does: before
// or after its values were first asked for, each instance has its own.
func TestMovedInstances(t *testing.T) {
	const n, size = 5000, 24
	for _, second := range []int{n, 1} { // instances of the second indom
		var list []mmvimage.Inst
		x, y := many("x", 1, 1), many("y", 2, 2)
		for i := range n {
			list = append(list, mmvimage.Inst{ID: int32(i), Name: fmt.Sprint("i", i)})
			x.Values = append(x.Values, mmvimage.Int(int64(i)))
		}
		y.Values = x.Values[:second]
		img := mmvimage.New(2).Cluster(9).InDom(1, "", "", list...).InDom(2, "", "", list[:second]...).Metric(x).Metric(y)
		before, after, l := img.Build(), img.Build(), img.Layout()
		for i := range n + second {
			to := l.Instance((i + second) % (n + second))
			copy(after[to:][:size], before[l.Instance(i):])
			mmvimage.PutU64(after, l.Value(i)+mmvimage.ValueInst, to)
		}
		mmvimage.PutU64(after, l.InDom(0)+mmvimage.InDomOffset, l.Instance(second))
		mmvimage.PutU64(after, l.InDom(1)+mmvimage.InDomOffset, l.Instance(0))
		for _, asked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, asked before: %v", second, asked), func(t *testing.T) {
				b := newBox(t)
				b.write("f", before)
				b.start()
				equal(t, "instances", len(strings.Fields(b.instances(b.desc("mmv.f.x").InDom))), n) // all is read
				if asked {
					equal(t, "values before", b.fetch(nil, b.pmid("mmv.f.x")).Sets[0].NumVal, n)
				}
				f, err := os.OpenFile(filepath.Join(b.dir, "f"), os.O_RDWR, 0)
				must(t, err)
				_, err = f.WriteAt(after, 0)
				must(t, errors.Join(err, f.Close()))
				for k, set := range b.fetch(nil, b.pmid("mmv.f.x"), b.pmid("mmv.f.y")).Sets {
					equal(t, "values", int(set.NumVal), []int{n, second}[k])
					for i := range set.Values {
						v, err := set.Values[i].Extract(set.Format, pcpwire.TypeI64)
						must(t, err)
						if v.I64() != int64(set.Values[i].Inst) {
							t.Fatalf("instance %d has the value of %d", set.Values[i].Inst, v.I64())
						}
					}
				}
			})
		}
	}
}
