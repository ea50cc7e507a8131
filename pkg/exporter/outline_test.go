package exporter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pmdammv/pkg/pmda"
	"pmdammv/test/mmvimage"
)

// manyValues is a file of so many values that the first look reads no instances of
// it. Instance i is named name and i, its value is i.
func manyValues(name string) *mmvimage.Image {
	return instances(name, 5000, "m", 1).Metric(metric("n", 2, 7))
}

// instances is a file with n instances of one metric, in cluster 9.
func instances(name string, n int, of string, item uint32) *mmvimage.Image {
	m := many(of, item, 1)
	list := make([]mmvimage.Inst, n)
	for i := range list {
		list[i] = mmvimage.Inst{ID: int32(i), Name: fmt.Sprint(name, i)}
		m.Values = append(m.Values, mmvimage.Int(int64(i)))
	}
	return mmvimage.New(3).Cluster(9).InDom(1, "", "", list...).Metric(m)
}

// flawed is that with an instance that has no name.
func flawed(img *mmvimage.Image) []byte {
	b := img.Build()
	mmvimage.PutU64(b, img.Layout().Instance(17)+mmvimage.InstName, 1<<40)
	return b
}

const flaw = "w f: loaded: 1 entry of it not used; instance[17] name at offset "

// has tells whether one of the lines begins so.
func has(lines []string, begin string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, begin) })
}

// The instances of a large file that is there at the start are read before
// anything but names is told, and nothing is then said to have changed.
func TestOutline(t *testing.T) {
	for what, ask := range map[string]func(b *box){
		"values":    func(b *box) { equal(t, "value", b.values("mmv.f.n"), "7") },
		"instances": func(b *box) { equal(t, "instances", len(strings.Fields(b.instances(b.desc("mmv.f.m").InDom))), 4999) },
		"control":   func(b *box) { equal(t, "files", b.values("mmv.control.files"), "2") },
		"time":      func(b *box) { b.e.Start() },
	} {
		t.Run(what, func(t *testing.T) {
			b := newBox(t)
			b.write("f", flawed(manyValues("x")))
			b.put("g", one(1))
			b.start()
			equal(t, "names", fmt.Sprint(b.names()), "[mmv.g.m mmv.f.n mmv.f.m]")
			was, desc := b.look(), b.desc("mmv.f.m")
			if told := b.told(); has(told, flaw) || !has(told, "i : 2 files with 3 metrics in ") {
				t.Errorf("told with the names: %q", told)
			}
			ask(b)
			var told []string
			wait(t, "what is wrong to be told", func() bool {
				told = append(told, b.told()...)
				return has(told, flaw)
			})
			equal(t, "told", len(told), 1)
			equal(t, "changes", b.look(), was)
			equal(t, "descriptor", b.desc("mmv.f.m"), desc)
			equal(t, "reloads", b.values("mmv.control.reloads"), "0")
			equal(t, "values", b.fetch(nil, desc.PMID).Sets[0].NumVal, 4999)
			b.ask(func(s pmda.Session) {
				insts, err := s.Instances(desc.InDom)
				must(t, err)
				inst, name := insts.At(4998)
				equal(t, "the last", fmt.Sprintf("%d %s", inst, name), "4999 x4999")
			})
			b.put("h", manyValues("x").Cluster(10))
			b.look()
			equal(t, "reloads with another file", b.values("mmv.control.reloads"), "1")
			equal(t, "value of one that comes later", b.values("mmv.h.n"), "7")
			if told := b.told(); len(told) != 1 || told[0] != "i h: loaded" {
				t.Errorf("told in the end: %q", told)
			}
		})
	}
}

// Where names or labels depend on instances, they are read at once.
func TestNoOutline(t *testing.T) {
	for what, files := range map[string]map[string]*mmvimage.Image{
		"shared cluster":          {"f": manyValues("x"), "g": manyValues("x")},
		"shared with a small one": {"f": manyValues("x"), "g": one(1).Cluster(9)},
		"labels":                  {"f": manyValues("x").Label(mmvimage.LabelInstances, 1, 3, `{"a":1}`)},
		"small":                   {"f": instances("x", 100, "m", 1)},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBox(t)
			for name, img := range files {
				if name == "f" {
					b.write(name, flawed(img))
				} else {
					b.put(name, img)
				}
			}
			b.start()
			_ = b.names()
			if told := b.told(); !has(told, flaw) {
				t.Errorf("told: %q", told)
			}
		})
	}
}

// A large file that is rewritten, replaced or removed before anything but names was
// asked for is what it has become.
func TestOutlineChanged(t *testing.T) {
	for what, change := range map[string]func(b *box) string{
		"replaced": func(b *box) string {
			b.put("f", manyValues("y"))
			return "4999 y4999"
		},
		"gone": func(b *box) string {
			b.remove("f")
			return ""
		},
		"truncated": func(b *box) string {
			must(t, os.Truncate(filepath.Join(b.dir, "f"), 100_000))
			return ""
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBox(t)
			b.put("f", manyValues("x"))
			b.start()
			d := b.desc("mmv.f.m")
			b.ask(func(s pmda.Session) {
				want := change(b) // after Begin
				insts, err := s.Instances(d.InDom)
				if err != nil {
					equal(t, "the last", "", want)
					return
				}
				inst, name := insts.At(insts.Len() - 1)
				equal(t, "the last", fmt.Sprintf("%d %s", inst, name), want)
			})
		})
	}
}

// A file of which no instances were read is not kept as it was while it is
// rewritten: what it had is not known. It has its own again when that is over, and
// not those of a file that came meanwhile.
func TestOutlineHeld(t *testing.T) {
	b := newBox(t)
	image := manyValues("x").Build()
	b.write("f", image)
	b.start()
	desc := b.desc("mmv.f.m")
	b.putG2(make([]byte, 8))
	b.look()
	equal(t, "names", fmt.Sprint(b.names()), "[]")
	b.put("g", mmvimage.New(2).Cluster(9).InDom(1, "", "", insts("0:other")...).Metric(many("k", 5, 1, 3)))
	b.look()
	b.putG2(image[mmvimage.HdrG2 : mmvimage.HdrG2+8])
	equal(t, "instances", len(strings.Fields(b.instances(b.desc("mmv.f.m").InDom))), 5000)
	equal(t, "descriptor", b.desc("mmv.f.m").PMID, desc.PMID)
	equal(t, "the other one's", b.instances(b.desc("mmv.g.k").InDom), "0:other")
}

// Where nobody asks in the first moments, the first look is a whole one, too: what is
// wrong is told, and a file is kept as it was while it is rewritten.
func TestOutlineOfNobody(t *testing.T) {
	b := newBox(t)
	b.write("f", flawed(manyValues("x")))
	b.make()
	b.e.Start()
	wait(t, "what is wrong to be told", func() bool { return has(b.told(), flaw) })
	b.open()
	b.putG2(make([]byte, 8))
	equal(t, "names while it is rewritten", fmt.Sprint(b.names()), "[mmv.f.n mmv.f.m]")
}

// A file that comes in the first moments, and of which nobody asks, makes a reload.
func TestOutlineReloads(t *testing.T) {
	b := newBox(t)
	b.put("f", manyValues("x"))
	b.start()
	b.put("g", one(1))
	b.e.Start()
	wait(t, "g", func() bool { return has(b.told(), "i g: loaded") })
	equal(t, "reloads", b.values("mmv.control.reloads"), "1")
}
