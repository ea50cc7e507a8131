package exporter_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/test/mmvimage"
)

// manyValues is a file of so many values that they and the instances are only read
// when one of them is asked for. Instance i is named name and i, its value is i.
func manyValues(name string) *mmvimage.Image {
	img, m := mmvimage.New(2).Cluster(9), many("m", 1, 1)
	list := make([]mmvimage.Inst, 5000)
	for i := range list {
		list[i] = mmvimage.Inst{ID: int32(i), Name: fmt.Sprint(name, i)}
		m.Values = append(m.Values, mmvimage.Int(int64(i)))
	}
	return img.InDom(1, "", "", list...).Metric(m).Metric(metric("n", 2, 7))
}

// What is found to be wrong with a large file when its instances and values are
// read is told then, once.
func TestRemarksLater(t *testing.T) {
	img := manyValues("x")
	image, l := img.Build(), img.Layout()
	mmvimage.PutU64(image, l.Instance(17)+mmvimage.InstName, 1<<40)
	mmvimage.PutU64(image, l.Value(30)+mmvimage.ValueMetric, 3)
	for what, ask := range map[string]func(b *box){
		"values":    func(b *box) { b.fetch(nil, b.pmid("mmv.f.m")) },
		"instances": func(b *box) { b.instances(b.desc("mmv.f.m").InDom) },
	} {
		t.Run(what, func(t *testing.T) {
			b := newBox(t)
			b.write("f", image)
			b.put("g", one(1))
			b.start()
			was, reloads := b.look(), b.values("mmv.control.reloads")
			b.told()
			equal(t, "problems before", len(b.statuses()), 0)
			ask(b)
			const want = "loaded: 2 entries of it not used; instance[17] name at offset …; value[30] metric at offset …"
			told := b.told()
			if len(told) != 1 || !like(told[0], "w f: "+want) {
				t.Errorf("told %q", told)
			}
			if got := b.statuses()["f"]; !like(got, want) {
				t.Errorf("status %q", got)
			}
			equal(t, "changes", b.look(), was)
			equal(t, "values", b.fetch(nil, b.pmid("mmv.f.m")).Sets[0].NumVal, 4998)
			ask(b)
			equal(t, "reloads", b.values("mmv.control.reloads"), reloads)
			for range 2 {
				b.write("f", image) // the same again
				b.look()
				ask(b)
			}
			if told := b.told(); len(told) != 0 {
				t.Errorf("told again: %q", told)
			}
			b.put("f", manyValues("y"))
			ask(b)
			if told := b.told(); len(told) != 1 || told[0] != "i f: loaded" {
				t.Errorf("told when it is good: %q", told)
			}
		})
	}
}

// Instances that are read when they are asked for are those of the file that is
// there then, whatever has become of the one from before.
func TestInstancesLater(t *testing.T) {
	for what, change := range map[string]func(b *box){
		"replaced": func(b *box) { b.put("f", manyValues("y")) },
		"gone, and another in its place": func(b *box) {
			b.remove("f")
			b.put("f", manyValues("y"))
		},
		"another in its cluster": func(b *box) {
			b.put("f", manyValues("y"))
			b.put("g", manyValues("y"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBox(t)
			b.put("f", manyValues("x"))
			b.start()
			id := b.desc("mmv.f.m").InDom
			b.ask(func(s pmda.Session) {
				change(b)
				insts, err := s.Instances(id)
				must(t, err)
				equal(t, "instances", insts.Len(), 5000)
				inst, name := insts.At(4999)
				equal(t, "the last", fmt.Sprintf("%d %s", inst, name), "4999 y4999")
			})
			equal(t, "value", b.show(&b.fetch(only(id, 4999), b.pmid("mmv.f.m")).Sets[0]), "4999=4999")
		})
	}
}

// Instances that can no longer be read are those of a file that has gone.
func TestInstancesGone(t *testing.T) {
	b := newBox(t)
	b.put("f", manyValues("x"))
	b.start()
	id := b.desc("mmv.f.m").InDom
	b.ask(func(s pmda.Session) {
		b.remove("f")
		b.e.Refresh() // another request has already seen that
		if insts, err := s.Instances(id); !errors.Is(err, pcpwire.ErrInDom) {
			t.Errorf("%v, %v", insts, err)
		}
	})
}

// A file that has not changed keeps its indom, and one that has gets another.
func TestChangedInstances(t *testing.T) {
	for what, n := range map[string]int{"small": 10, "large": 5000} {
		t.Run(what, func(t *testing.T) {
			file := func(name, metric string, item uint32) *mmvimage.Image {
				img, m := mmvimage.New(2).Cluster(9), many(metric, item, 1)
				list := make([]mmvimage.Inst, n)
				for i := range list {
					list[i] = mmvimage.Inst{ID: int32(i), Name: fmt.Sprint(name, i)}
					m.Values = append(m.Values, mmvimage.Int(int64(i)))
				}
				return img.InDom(1, "", "", list...).Metric(m)
			}
			b := newBox(t)
			b.put("f", file("x", "m", 1))
			b.start()
			b.put("g", file("x", "n", 2))
			was := b.desc("mmv.g.n").InDom
			equal(t, "indom of both", b.desc("mmv.f.m").InDom, was)
			b.put("f", file("y", "m", 1))
			equal(t, "indom of the one that has not changed", b.desc("mmv.g.n").InDom, was)
			if b.desc("mmv.f.m").InDom == was {
				t.Error("the one that has changed still has it, too")
			}
		})
	}
}

// Of a metric that several files have, the value is that of the first that has
// one: not of a file that is being rewritten.
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
			file, err := os.OpenFile(filepath.Join(b.dir, "f"), os.O_RDWR, 0)
			must(t, err)
			_, err = file.WriteAt(make([]byte, 8), mmvimage.HdrG2)
			must(t, err)
			must(t, file.Close())
			sets := b.fetch(nil, m, n).Sets
			equal(t, "values of the other one", fmt.Sprint(sets[0].NumVal, sets[1].NumVal), fmt.Sprint(before, 1))
			equal(t, "instances", len(strings.Fields(b.instances(b.desc("mmv.m").InDom))), int(before))
		})
	}
}

// Two large files share a cluster and an indom.
func TestMergedLater(t *testing.T) {
	b := newBox(t)
	b.put("f", manyValues("x").Flags(mmvimage.NoPrefix))
	b.put("g", manyValues("x").Flags(mmvimage.NoPrefix))
	b.start()
	equal(t, "values", b.fetch(nil, b.pmid("mmv.m")).Sets[0].NumVal, 5000)
	list := strings.Fields(b.instances(b.desc("mmv.m").InDom))
	equal(t, "instances", len(list), 5000)
	if !slices.Contains(list, "4999:x4999") {
		t.Errorf("the last is %s", list[len(list)-1])
	}
}

// only is a profile of one instance.
func only(id pcpwire.InDom, inst int32) *pcpwire.Profile {
	return &pcpwire.Profile{State: pcpwire.ProfileExclude, InDoms: []pcpwire.ProfileInDom{{InDom: id, State: pcpwire.ProfileExclude, Insts: []int32{inst}}}}
}
