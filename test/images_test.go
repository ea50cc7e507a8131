package test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"pmdammv/test/mmvimage"
)

// fullImage has something of everything: each type with and without instances, texts, and in version 3 labels.
func fullImage(version int32) *mmvimage.Image {
	img := mmvimage.New(version).Cluster(330+version).
		InDom(1, "one-line", "full text", mmvimage.Inst{ID: 5, Name: "five"}, mmvimage.Inst{ID: 1, Name: "one two"}).
		Metric(mmvimage.Metric{
			Name: "m.count", Item: 1, Type: mmvimage.U64, Sem: mmvimage.Counter, Units: 1 << 20, Short: "short", Help: "help",
			Values: []mmvimage.Value{mmvimage.Int(99)},
		}).
		Metric(mmvimage.Metric{
			Name: "m.text", Item: 2, Type: mmvimage.String, Sem: mmvimage.Discrete, Help: "only help",
			Values: []mmvimage.Value{mmvimage.Text("some text")},
		})
	for i, typ := range allTypes {
		img.Metric(mmvimage.Metric{
			Name: fmt.Sprintf("t%d.single", typ), Item: uint32(10 + i), Type: typ, Sem: mmvimage.Instant,
			Values: []mmvimage.Value{valueOf(typ, 1)},
		}).Metric(mmvimage.Metric{
			Name: fmt.Sprintf("t%d.each", typ), Item: uint32(20 + i), Type: typ, Sem: mmvimage.Instant, InDom: 1, Short: "each",
			Values: []mmvimage.Value{valueOf(typ, 2), valueOf(typ, -3)},
		})
	}
	if version == 3 {
		img.Label(mmvimage.LabelCluster, uint32(330+version), -1, `{"zz":1}`).
			Label(mmvimage.LabelCluster|mmvimage.LabelOptional, uint32(330+version), -1, `{"aa":"x y"}`).
			Label(mmvimage.LabelItem, 1, -1, `{"item":[1,2]}`).
			Label(mmvimage.LabelInDom, 1, -1, `{"indom":true}`).
			Label(mmvimage.LabelInstances, 1, 5, `{"inst":null}`)
	}
	return img
}

var allTypes = []int32{
	mmvimage.I32, mmvimage.U32, mmvimage.I64, mmvimage.U64, mmvimage.Float, mmvimage.Double, mmvimage.String,
	mmvimage.Elapsed,
}

// valueOf is a value for a metric of that type.
func valueOf(typ, v int32) mmvimage.Value {
	switch typ {
	case mmvimage.I32, mmvimage.U32:
		return mmvimage.Int32(v)
	case mmvimage.Float:
		return mmvimage.Float32(float32(v) / 4)
	case mmvimage.Double:
		return mmvimage.Float64(float64(v) / 8)
	case mmvimage.String:
		return mmvimage.Text(fmt.Sprint("text ", v))
	case mmvimage.Elapsed:
		return mmvimage.Timed(int64(v)*1000, 0)
	default:
		return mmvimage.Int(int64(v))
	}
}

// goodImages are files that every agent should export alike, by file name. What does differ on purpose is listed with
// the comparison.
func goodImages() map[string][]byte {
	metric := func(name string, item uint32, typ int32, vals ...mmvimage.Value) mmvimage.Metric {
		return mmvimage.Metric{Name: name, Item: item, Type: typ, Sem: mmvimage.Instant, Values: vals}
	}
	i64 := func(name string, item uint32, v int64) mmvimage.Metric {
		return metric(name, item, mmvimage.I64, mmvimage.Int(v))
	}
	out := map[string][]byte{
		"sentinels": mmvimage.New(1).Cluster(10).Flags(mmvimage.Sentinel).
			Metric(metric("i32", 1, mmvimage.I32, mmvimage.Int(-1))).
			Metric(metric("i32_half", 2, mmvimage.I32, mmvimage.Int32(-1))).
			Metric(metric("u64", 3, mmvimage.U64, mmvimage.Int(-1))).
			Metric(metric("text", 6, mmvimage.String, mmvimage.Text(""))).
			Metric(metric("here", 7, mmvimage.I64, mmvimage.Int(0))).Build(),
		"nans": mmvimage.New(1).Cluster(27).Flags(mmvimage.Sentinel).
			Metric(metric("double", 1, mmvimage.Double, mmvimage.Float64(math.NaN()))).
			Metric(metric("float", 2, mmvimage.Float, mmvimage.Float32(float32(math.NaN())))).Build(),
		"no_sentinels": mmvimage.New(2).Cluster(11).
			Metric(metric("i32", 1, mmvimage.I32, mmvimage.Int(-1))).
			Metric(metric("u64", 3, mmvimage.U64, mmvimage.Int(-1))).
			Metric(metric("double", 4, mmvimage.Double, mmvimage.Float64(math.Inf(-1)))).
			Metric(metric("float", 5, mmvimage.Float, mmvimage.Float32(math.MaxFloat32))).
			Metric(metric("text", 6, mmvimage.String, mmvimage.Text(""))).Build(),
		"longest": mmvimage.New(2).Cluster(12).
			Metric(metric(strings.Repeat("a.b_", 50)+"end", 1, mmvimage.String, mmvimage.Text(strings.Repeat("x", 255)))).
			Metric(mmvimage.Metric{
				Name: "help", Item: 2, Type: mmvimage.I64, Sem: mmvimage.Instant,
				Short: strings.Repeat("s", 255), Help: strings.Repeat("h", 255),
			}).Build(),
		"names": mmvimage.New(1).Cluster(13).Metric(i64("1digit.2", 1, 1)).Metric(i64("_under", 2, 2)).
			Metric(i64("Upper.case", 3, 3)).Metric(i64("a.b.c.d.e.f.g", 4, 4)).Metric(i64("a.b.c.x", 5, 5)).
			Metric(i64("a.b.y", 6, 6)).Build(),
		"extreme_numbers": mmvimage.New(1).Cluster(2047).
			InDom(0x3fffff, "", "", mmvimage.Inst{ID: -1000, Name: "negative"}, mmvimage.Inst{ID: math.MaxInt32, Name: "large"}).
			InDom(3, "", "", mmvimage.Inst{ID: 0, Name: "a"}).
			Metric(i64("first", 0, 1)).Metric(i64("last", 1023, 2)).
			Metric(mmvimage.Metric{Name: "units", Item: 3, Type: mmvimage.I64, Sem: mmvimage.Counter, Units: 0xfedcba00}).
			Metric(mmvimage.Metric{Name: "each", Item: 4, Type: mmvimage.I64, Sem: mmvimage.Counter, InDom: 0x3fffff}).Build(),
		"semantics": mmvimage.New(1).Cluster(14).
			Metric(mmvimage.Metric{Name: "zero", Item: 1, Type: mmvimage.I64, Sem: 0}).
			Metric(mmvimage.Metric{Name: "two", Item: 2, Type: mmvimage.I64, Sem: 2}).
			Metric(mmvimage.Metric{Name: "discrete", Item: 3, Type: mmvimage.I64, Sem: mmvimage.Discrete}).Build(),
		"running": mmvimage.New(1).Cluster(15).
			Metric(metric("now", 1, mmvimage.Elapsed, mmvimage.Timed(0, -1))).
			Metric(metric("stopped", 2, mmvimage.Elapsed, mmvimage.Timed(5, 0))).Build(),
		"gaps": mmvimage.New(1).Cluster(16).
			InDom(1, "", "", mmvimage.Inst{ID: 0, Name: "a"}, mmvimage.Inst{ID: 1, Name: "b"}, mmvimage.Inst{ID: 2, Name: "c"}).
			Metric(mmvimage.Metric{Name: "all", Item: 1, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 1}).
			Metric(mmvimage.Metric{
				Name: "some", Item: 2, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 1,
				Values: []mmvimage.Value{mmvimage.None(), mmvimage.Int(7), mmvimage.None()},
			}).
			Metric(mmvimage.Metric{
				Name: "none", Item: 3, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 1, Values: mmvimage.NoValues(),
			}).
			Metric(mmvimage.Metric{Name: "nothing", Item: 4, Type: mmvimage.I64, Sem: mmvimage.Instant, Values: mmvimage.NoValues()}).
			Build(),
		"empty_indom": mmvimage.New(1).Cluster(17).InDom(1, "", "", mmvimage.Inst{ID: 0, Name: "a"}).InDom(2, "", "").
			Metric(mmvimage.Metric{Name: "some", Item: 1, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 1}).
			Metric(mmvimage.Metric{Name: "none", Item: 2, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 2}).Build(),
		"words": mmvimage.New(1).Cluster(18).InDom(1, "", "", mmvimage.Inst{ID: 1, Name: "1 minute"},
			mmvimage.Inst{ID: 5, Name: "5 minute"}, mmvimage.Inst{ID: 15, Name: "5"}, mmvimage.Inst{ID: 16, Name: "15 minute"}).
			Metric(mmvimage.Metric{Name: "load", Item: 1, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 1}).Build(),
		"auto1":      mmvimage.New(1).Metric(i64("value", 1, 1)).Build(),
		"auto2":      mmvimage.New(2).Metric(i64("value", 1, 2)).Build(),
		"noprefix":   mmvimage.New(1).Cluster(19).Flags(mmvimage.NoPrefix).Metric(i64("bare.value", 1, 1)).Build(),
		"trailing":   append(mmvimage.New(1).Cluster(20).Metric(i64("value", 1, 1)).Build(), "more"...),
		"unaligned":  mmvimage.New(1).Cluster(21).Gap(3).Metric(i64("value", 1, 0x0102030405060708)).Build(),
		"no_metrics": mmvimage.New(1).Cluster(22).Build(),
		"labels":     labelledImage(),
		"other_pid":  mmvimage.New(1).Cluster(23).PID(math.MaxInt32).Metric(i64("value", 1, 1)).Build(),
		"gone":       mmvimage.New(1).Cluster(24).PID(math.MaxInt32).Flags(mmvimage.Process).Metric(i64("value", 1, 1)).Build(),
		"pending":    mmvimage.New(1).Cluster(25).Generations(5, 0).Metric(i64("value", 1, 1)).Build(),
	}
	for version := int32(1); version <= 3; version++ {
		out[fmt.Sprintf("full%d", version)] = fullImage(version).Build()
	}
	return out
}

// labelledImage has labels of every level; more than one for the same, and merged ones.
func labelledImage() []byte {
	return mmvimage.New(3).Cluster(26).
		InDom(1, "", "", mmvimage.Inst{ID: 0, Name: "zero"}, mmvimage.Inst{ID: 1, Name: "one"}, mmvimage.Inst{ID: 2, Name: "two"}).
		InDom(2, "", "", mmvimage.Inst{ID: 0, Name: "zero"}).
		Metric(mmvimage.Metric{Name: "each", Item: 1, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 1}).
		Metric(mmvimage.Metric{Name: "other", Item: 2, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 2}).
		Metric(mmvimage.Metric{Name: "plain", Item: 3, Type: mmvimage.I64, Sem: mmvimage.Instant}).
		Label(mmvimage.LabelCluster, 26, -1, `{"zz":1}`).
		Label(mmvimage.LabelCluster, 26, -1, `{"aa":-2.5e3}`).
		Label(mmvimage.LabelCluster|mmvimage.LabelOptional, 26, -1, `{"note":"text with \"quotes\""}`).
		Label(mmvimage.LabelInDom, 1, -1, `{"bus":"pci"}`).
		Label(mmvimage.LabelItem, 1, -1, `{"ab":"q"}`).
		Label(mmvimage.LabelItem, 1, -1, `{"abc":1}`).
		Label(mmvimage.LabelItem|mmvimage.LabelOptional, 1, -1, `{"ab":"second"}`).
		Label(mmvimage.LabelItem, 3, -1, `{"list":[1,"two",null]}`).
		Label(mmvimage.LabelInstances, 1, 0, `{"slot":0}`).
		Label(mmvimage.LabelInstances, 1, 2, `{"slot":2}`).
		Label(mmvimage.LabelInstances|mmvimage.LabelOptional, 1, 2, `{"extra":true}`).
		Build()
}

type badImage struct {
	name    string
	image   []byte
	exports bool // at least one metric, in spite of what is wrong
	pending bool // not complete: if it replaces a good file, that one's names stay for a while, without values
}

// badImages are files that are not what they should be.
func badImages() []badImage {
	var out []badImage
	add := func(name string, image []byte) { out = append(out, badImage{name: name, image: image}) }
	half := func(name string, image []byte) { out = append(out, badImage{name: name, image: image, pending: true}) }
	patched := func(version int32, patch func(b []byte, l mmvimage.Layout)) []byte {
		img := fullImage(version)
		b := img.Build()
		patch(b, img.Layout())
		return b
	}
	u32 := func(version int32, off uint64, v uint32) []byte {
		return patched(version, func(b []byte, _ mmvimage.Layout) { mmvimage.PutU32(b, off, v) })
	}

	half("empty", nil)
	add("text", []byte("not an MMV file\n"))
	half("zeros", make([]byte, 4096))
	for version := int32(1); version <= 3; version++ {
		whole := fullImage(version).Build()
		for _, n := range []int{1, 4, 39} {
			half(fmt.Sprintf("v%d, %d bytes of it", version, n), whole[:n])
		}
		for _, n := range []int{40, 71, 100, 500} {
			add(fmt.Sprintf("v%d, %d bytes of it", version, n), whole[:n])
		}
	}
	half("tag", u32(1, mmvimage.HdrMagic, 0))
	for _, v := range []uint32{0, 4, 0xffffffff} {
		add("version", u32(1, mmvimage.HdrVersion, v))
	}
	add("other byte order", fullImage(1).ByteOrder(otherOrder()).Build())
	half("never complete", fullImage(1).Generations(3, 0).Build())
	half("generations differ", fullImage(1).Generations(3, 4).Build())
	half("generations 0", fullImage(1).Generations(0, 0).Build())
	for _, n := range []uint32{0, 1, 0x7fffffff, 0x80000000, 0xffffffff} {
		add(fmt.Sprintf("%d sections", n), u32(1, mmvimage.HdrTOCs, n))
	}
	add("cluster 4096", fullImage(1).Cluster(4096).Build())
	add("cluster -1", fullImage(1).Cluster(-1).Build())
	add("pid -1", fullImage(1).Flags(mmvimage.Process).PID(-1).Build())

	for version := int32(1); version <= 3; version++ {
		for _, sec := range []uint32{mmvimage.SecInDoms, mmvimage.SecInstances, mmvimage.SecMetrics, mmvimage.SecValues} {
			for _, n := range []uint32{100000, 0x7fffffff, 0x80000000, 0xffffffff} {
				add(fmt.Sprintf("v%d, section %d of %d entries", version, sec, n),
					patched(version, func(b []byte, l mmvimage.Layout) { mmvimage.PutU32(b, l.Section(sec)+mmvimage.TOCCount, n) }))
			}
			for _, off := range []uint64{1 << 20, 1 << 63, 1<<64 - 1, 1<<64 - 64} {
				add(fmt.Sprintf("v%d, section %d at %#x", version, sec, off),
					patched(version, func(b []byte, l mmvimage.Layout) { mmvimage.PutU64(b, l.Section(sec)+mmvimage.TOCOffset, off) }))
			}
		}
	}
	return append(out, flawedImages(patched)...)
}

// flawedImages have something wrong that concerns only a part of them.
func flawedImages(patched func(int32, func([]byte, mmvimage.Layout)) []byte) []badImage {
	var out []badImage
	add := func(name string, image []byte) { out = append(out, badImage{name: name, image: image, exports: true}) }
	wild := []uint64{1, 39, 1 << 20, 1 << 63, 1<<64 - 1, 1<<64 - 256}
	for _, off := range wild {
		for name, field := range map[string]func(l mmvimage.Layout) uint64{
			"offset of strings":    func(l mmvimage.Layout) uint64 { return l.Section(mmvimage.SecStrings) + mmvimage.TOCOffset },
			"one-line help":        func(l mmvimage.Layout) uint64 { return l.MetricFields(0) + mmvimage.MetricShort },
			"help":                 func(l mmvimage.Layout) uint64 { return l.MetricFields(1) + mmvimage.MetricHelp },
			"help of an indom":     func(l mmvimage.Layout) uint64 { return l.InDom(0) + mmvimage.InDomHelp },
			"value's metric":       func(l mmvimage.Layout) uint64 { return l.Value(0) + mmvimage.ValueMetric },
			"value's instance":     func(l mmvimage.Layout) uint64 { return l.Value(3) + mmvimage.ValueInst },
			"string value":         func(l mmvimage.Layout) uint64 { return l.Value(1) + mmvimage.ValueExtra },
			"instance's indom":     func(l mmvimage.Layout) uint64 { return l.Instance(0) + mmvimage.InstInDom },
			"indom's instances":    func(l mmvimage.Layout) uint64 { return l.InDom(0) + mmvimage.InDomOffset },
			"number of instances":  func(l mmvimage.Layout) uint64 { return l.InDom(0) + mmvimage.InDomCount },
			"number of strings":    func(l mmvimage.Layout) uint64 { return l.Section(mmvimage.SecStrings) + mmvimage.TOCCount },
			"metric's indom":       func(l mmvimage.Layout) uint64 { return l.MetricFields(3) + mmvimage.MetricInDom },
			"metric's type":        func(l mmvimage.Layout) uint64 { return l.MetricFields(1) + mmvimage.MetricType },
			"metric's item":        func(l mmvimage.Layout) uint64 { return l.MetricFields(1) + mmvimage.MetricItem },
			"internal instance id": func(l mmvimage.Layout) uint64 { return l.Instance(1) + mmvimage.InstInternal },
		} {
			narrow := strings.HasPrefix(name, "number") || strings.HasPrefix(name, "metric's") || strings.HasPrefix(name, "internal")
			add(fmt.Sprintf("%s %#x", name, off), patched(1, func(b []byte, l mmvimage.Layout) {
				if narrow {
					mmvimage.PutU32(b, field(l), uint32(off>>32|off))
				} else {
					mmvimage.PutU64(b, field(l), off)
				}
			}))
		}
		add(fmt.Sprintf("v2, name of an instance at %#x", off), patched(2, func(b []byte, l mmvimage.Layout) {
			mmvimage.PutU64(b, l.Instance(0)+mmvimage.InstName, off)
		}))
		add(fmt.Sprintf("v3, name of a metric at %#x", off), patched(3, func(b []byte, l mmvimage.Layout) {
			mmvimage.PutU64(b, l.Metric(1), off)
		}))
		add(fmt.Sprintf("v3, offset of labels %#x", off), patched(3, func(b []byte, l mmvimage.Layout) {
			mmvimage.PutU64(b, l.Section(mmvimage.SecLabels)+mmvimage.TOCOffset, off)
		}))
	}
	x := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	add("name without an end", patched(1, func(b []byte, l mmvimage.Layout) { copy(b[l.Metric(1):], x(64)) }))
	add("instance's name without an end", patched(1, func(b []byte, l mmvimage.Layout) { copy(b[l.Instance(1)+mmvimage.InstName:], x(64)) }))
	add("strings without an end", patched(2, func(b []byte, l mmvimage.Layout) {
		for i := range l.NumStrings {
			if i > 4 { // the indom's texts and names, and the first metric's, keep theirs
				copy(b[l.String(i):], x(mmvimage.StringSize))
			}
		}
	}))
	for _, payload := range []string{"", "{", "not JSON", `{"a":`, `{"a":1}}`, "[1]", `{"":1}`, "{\"a\":\"\xff\"}", string(x(244))} {
		add("label "+payload, fullImage(3).Label(mmvimage.LabelItem, 1, -1, payload).Build())
	}
	add("label of nothing", fullImage(3).Label(0xffffffff, 0xffffffff, math.MinInt32, `{"a":1}`).Build())
	return out
}

func otherOrder() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}
