package exporter_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pmdammv/test/mmvimage"
)

// A file that is being published again keeps its names, numbers and
// descriptors for 5 s, without values; and says so.
func TestHeld(t *testing.T) {
	ways := map[string]func(b *box){
		"in place":  func(b *box) { b.putG2(make([]byte, 8)) },
		"truncated": func(b *box) { must(t, os.Truncate(filepath.Join(b.dir, "f"), 0)) },
		"by a new file": func(b *box) {
			b.write("f", one(1).Generations(2, 0).Build())
		},
		"by a new file that is empty": func(b *box) { b.write("f", nil) },
	}
	for name, begin := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			img := func(v int64) *mmvimage.Image {
				return mmvimage.New(3).InDom(1, "", "", insts("0:x")...).Metric(many("m", 1, 1, v)).Label(mmvimage.LabelItem, 1, -1, `{"a":1}`)
			}
			synctest.Test(t, func(t *testing.T) {
				b.TB = t
				b.put("f", img(1))
				b.start()
				was, d := b.look(), b.desc("mmv.f.m")
				equal(t, "value", b.values("mmv.f.m"), "0=1")
				b.told()
				begin(b)
				check := func() {
					t.Helper()
					equal(t, "changes", b.look(), was)
					equal(t, "descriptor", b.desc("mmv.f.m"), d)
					equal(t, "instances", b.instances(d.InDom), "0:x")
					equal(t, "number of values", b.fetch(nil, d.PMID).Sets[0].NumVal, 0)
					equal(t, "files, pending", b.all(nil, "mmv.control.files", "mmv.control.pending", "mmv.control.rejected"), "0 | 1 | 0")
					if st := b.statuses(); len(st) != 1 || !strings.HasPrefix(st["f"], "pending: ") {
						t.Errorf("status %q", st)
					}
				}
				check()
				time.Sleep(4900 * time.Millisecond)
				check()
				b.put("f", img(2))
				equal(t, "value when it is published", b.values("mmv.f.m"), "0=2")
				equal(t, "changes", b.look(), was)
				begin(b)
				check()
				time.Sleep(4900 * time.Millisecond)
				check()
				time.Sleep(200 * time.Millisecond)
				if now := b.look(); now.Names == was.Names || now.Labels == was.Labels {
					t.Error("not told that it has gone")
				}
				equal(t, "names", fmt.Sprint(b.names()), "[]")
				b.put("f", img(3))
				equal(t, "value", b.values("mmv.f.m"), "0=3")
				equal(t, "changes", b.look(), was)
				equal(t, "descriptor", b.desc("mmv.f.m"), d)
				told := b.told()
				for i, want := range []string{"i f: pending: …", "i f: loaded", "i f: pending: …", "i f: loaded"} {
					if i >= len(told) || !like(told[i], want) {
						t.Errorf("told %q, not %q", told, want)
						break
					}
				}
				equal(t, "events", len(told), 4)
				b.stop()
			})
		})
	}
}

// A file that is deleted, and one whose process ends, go at once.
func TestGoneAtOnce(t *testing.T) {
	b := newBox(t)
	b.put("f", one(1))
	b.start()
	was := b.look()
	b.remove("f")
	if b.look() == was || len(b.names()) != 0 {
		t.Errorf("names %q", b.names())
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	must(t, cmd.Start())
	b.put("p", one(1).Flags(mmvimage.Process).PID(int32(cmd.Process.Pid)))
	equal(t, "value", b.values("mmv.p.m"), "1")
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	equal(t, "names", fmt.Sprint(b.names()), "[]")
	if st := b.statuses()["p"]; !strings.HasPrefix(st, fmt.Sprintf("process %d", cmd.Process.Pid)) || !strings.HasSuffix(st, "gone") {
		t.Errorf("status %q", st)
	}
}

// Of a metric that several files have, the value is that of the first that has one:
// not of a file that is being rewritten.
func TestHeldShared(t *testing.T) {
	small := func(v int64) *mmvimage.Image {
		return mmvimage.New(1).Cluster(9).InDom(1, "", "", insts("0:x0")...).Metric(many("m", 1, 1, v)).Metric(metric("n", 2, v))
	}
	for what, images := range map[string][2]*mmvimage.Image{
		"small": {small(1), small(0)},
		"large": {manyValues("x"), manyValues("x")},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBox(t)
			b.put("f", images[0].Flags(mmvimage.NoPrefix))
			b.put("g", images[1].Flags(mmvimage.NoPrefix))
			b.start()
			m, n := b.pmid("mmv.m"), b.pmid("mmv.n")
			before := b.fetch(nil, m).Sets[0].NumVal
			b.putG2(make([]byte, 8))
			sets := b.fetch(nil, m, n).Sets
			equal(t, "values of the other one", fmt.Sprint(sets[0].NumVal, sets[1].NumVal), fmt.Sprint(before, 1))
			equal(t, "instances", len(strings.Fields(b.instances(b.desc("mmv.m").InDom))), int(before))
		})
	}
}
