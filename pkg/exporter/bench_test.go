package exporter_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/exporter"
	"pmdammv/test/mmvimage"
)

// large are directories in which one more file is not to cost much.
var large = []struct {
	name  string
	files int
	file  func(i int) *mmvimage.Image
}{
	{"own clusters", 100, func(i int) *mmvimage.Image { return ten(i) }},
	{"own clusters", 4000, func(i int) *mmvimage.Image { return ten(i) }},
	{"workers that share all", 1000, func(i int) *mmvimage.Image {
		return ten(i).Cluster(7).Flags(mmvimage.NoPrefix)
	}},
	{"workers with names that are taken", 1000, func(i int) *mmvimage.Image { return ten(i).Flags(mmvimage.NoPrefix) }},
	{"explicit clusters", 10000, func(i int) *mmvimage.Image { return ten(i).Cluster(int32(i%4000 + 1)) }},
	{"400000 empty indoms", 2, func(i int) *mmvimage.Image {
		img := ten(i)
		if i == 0 {
			for s := range uint32(400_000) {
				img.InDom(s+2, "", "")
			}
		}
		return img
	}},
}

// ten is a file of ten metrics of ten instances that no other file has.
func ten(i int) *mmvimage.Image {
	var in []mmvimage.Inst
	for k := range 10 {
		in = append(in, mmvimage.Inst{ID: int32(i*10 + k), Name: fmt.Sprintf("inst %d.%d", i, k)})
	}
	img := mmvimage.New(1).InDom(1, "", "", in...)
	for k := range 10 {
		img.Metric(mmvimage.Metric{Name: fmt.Sprintf("group%d.metric%d", k%3, k), Item: uint32(k + 1), Type: mmvimage.U64, Sem: mmvimage.Counter, InDom: 1})
	}
	return img
}

// cpu is what this process has spent, which does not depend on what else runs.
func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOneMore is the processor time until a new file is exported, or one
// is not any more.
func BenchmarkOneMore(b *testing.B) {
	for _, l := range large {
		b.Run(fmt.Sprintf("%d %s", l.files, l.name), func(b *testing.B) {
			box := newBox(b, func(o *exporter.Options) { o.Reader.MaxFiles = 20000 })
			for i := range l.files {
				box.put(fmt.Sprintf("f%05d", i), l.file(i))
			}
			begin := cpu(b)
			box.start()
			first := cpu(b) - begin
			more := l.file(l.files)
			var sum, gone time.Duration
			for b.Loop() {
				box.put("g", more)
				begin := cpu(b)
				box.look()
				sum += cpu(b) - begin
				box.remove("g")
				begin = cpu(b)
				box.look()
				gone += cpu(b) - begin
			}
			b.ReportMetric(first.Seconds()*1e3, "ms/start")
			b.ReportMetric(sum.Seconds()*1e6/float64(b.N), "µs/new")
			b.ReportMetric(gone.Seconds()*1e6/float64(b.N), "µs/gone")
		})
	}
}
