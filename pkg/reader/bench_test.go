package reader_test

import (
	"fmt"
	"os"
	"testing"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// thousand is a file of 1000 singular metrics with help.
func thousand(version int32) *mmvimage.Image {
	img := mmvimage.New(version)
	for i := range 1000 {
		img.Metric(mmvimage.Metric{
			Name: fmt.Sprintf("group%d.metric%d", i%10, i), Item: uint32(i), Type: mmvimage.U64, Sem: mmvimage.Counter,
			Short: "one line", Help: "some longer help text that says it all",
		})
	}
	return img
}

// instances10k is a file of 10 metrics with 10,000 instances.
func instances10k(version int32) *mmvimage.Image {
	img := mmvimage.New(version)
	insts := make([]mmvimage.Inst, 10000)
	for i := range insts {
		insts[i] = mmvimage.Inst{ID: int32(i), Name: fmt.Sprintf("inst%d", i)}
	}
	img.InDom(1, "", "", insts...)
	for i := range 10 {
		img.Metric(mmvimage.Metric{Name: fmt.Sprintf("m%d", i), Item: uint32(i), Type: mmvimage.U64, InDom: 1})
	}
	return img
}

func BenchmarkParse(b *testing.B) {
	for version := int32(1); version <= 2; version++ {
		for name, img := range map[string]*mmvimage.Image{"metrics1000": thousand(version), "inst10k": instances10k(version)} {
			b.Run(fmt.Sprintf("%s/v%d", name, version), func(b *testing.B) {
				image := img.Build()
				b.SetBytes(int64(len(image)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := reader.Parse(image); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkLook is a look at a directory where nothing has changed, without and with
// writers that must be alive, 100 of them at the most.
func BenchmarkLook(b *testing.B) {
	for _, n := range []int{1, 10, 1000, 10000} {
		b.Run(fmt.Sprintf("files%d", n), func(b *testing.B) { benchmarkLook(b, n, nil) })
		b.Run(fmt.Sprintf("files%d/process", n), func(b *testing.B) {
			var pids []int32
			for range min(n, 100) {
				pids = append(pids, start(b, "wait", nil).pid())
			}
			benchmarkLook(b, n, pids)
		})
	}
}

func benchmarkLook(b *testing.B, n int, pids []int32) {
	dir := b.TempDir()
	for i := range n {
		img := counter("m", 1, 1)
		if pids != nil {
			img.Flags(mmvimage.Process).PID(pids[i%len(pids)])
		}
		check0(b, mmvimage.Write(fmt.Sprintf("%s/f%d", dir, i), img.Build()))
	}
	d, err := reader.Open(dir, reader.Options{MaxFiles: n})
	check0(b, err)
	defer d.Close()
	if s := d.Look(); len(s.Files) != n {
		b.Fatalf("%d files", len(s.Files))
	}
	b.ReportAllocs()
	for b.Loop() {
		d.Look()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/file")
}

// BenchmarkFirstLook is a start with 200 files of 1000 metrics.
func BenchmarkFirstLook(b *testing.B) {
	dir := b.TempDir()
	image := thousand(1).Build()
	for i := range 200 {
		check0(b, mmvimage.Write(fmt.Sprintf("%s/f%d", dir, i), image))
	}
	b.ReportAllocs()
	for b.Loop() {
		d, err := reader.Open(dir, reader.Options{})
		check0(b, err)
		if s := d.Look(); len(s.Files) != 200 {
			b.Fatalf("%d files", len(s.Files))
		}
		d.Close()
	}
}

// BenchmarkOneOfMany replaces one file among 1000 and looks.
func BenchmarkOneOfMany(b *testing.B) {
	dir := b.TempDir()
	image := counter("m", 100, 1).Build()
	for i := range 1000 {
		check0(b, mmvimage.Write(fmt.Sprintf("%s/f%d", dir, i), image))
	}
	d, err := reader.Open(dir, reader.Options{})
	check0(b, err)
	defer d.Close()
	d.Look()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		check0(b, mmvimage.Write(dir+"/f7", image))
		b.StartTimer()
		d.Look()
		d.Reap()
	}
}

// BenchmarkLoad loads all values of one file.
func BenchmarkLoad(b *testing.B) {
	one := mmvimage.New(1)
	insts := make([]mmvimage.Inst, 10000)
	for i := range insts {
		insts[i] = mmvimage.Inst{ID: int32(i), Name: "i"}
	}
	one.InDom(1, "", "", insts...).Metric(mmvimage.Metric{Name: "m", Type: mmvimage.U64, InDom: 1})
	for _, bb := range []struct {
		name string
		img  *mmvimage.Image
	}{
		{"singular1000", thousand(1)},
		{"inst10000", one},
		{"sentinel10000", one.Flags(mmvimage.Sentinel)},
		{"inst10kx10", instances10k(1)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			_, f := loadOne(b, bb.img)
			l := f.Layout()
			var ws []reader.Want
			for i := range f.Catalog.Metrics {
				ws = append(ws, reader.Want{Type: f.Catalog.Metrics[i].Type, Refs: l.Refs(uint32(i))})
			}
			var v reader.Values
			b.ReportAllocs()
			for b.Loop() {
				v.Reset()
				if !f.Load(ws, &v) {
					b.Fatal("no values")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(v.Bits)), "ns/value")
		})
	}
}

// BenchmarkFault catches the fault of a file that has become shorter.
func BenchmarkFault(b *testing.B) {
	w, f := loadOne(b, big())
	check0(b, os.Truncate(w.Path()+"/a", 0))
	ws := wants(f.Catalog)[:1]
	var v reader.Values
	for b.Loop() {
		v.Reset()
		if f.Load(ws, &v) {
			b.Fatal("values")
		}
	}
}
