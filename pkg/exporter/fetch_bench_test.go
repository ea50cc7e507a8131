package exporter

import (
	"fmt"
	"path/filepath"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// writeSet writes files of metrics, each with so many instances (0: singular).
func writeSet(tb testing.TB, dir string, files, metrics, instances int) {
	tb.Helper()
	for i := range files {
		img := mmvimage.New(1).Cluster(int32(100 + i))
		serial := int32(0)
		if instances > 0 {
			insts := make([]mmvimage.Inst, instances)
			for k := range insts {
				insts[k] = mmvimage.Inst{ID: int32(k), Name: fmt.Sprintf("inst-%05d", k)}
			}
			serial = 1
			img = img.InDom(1, "", "", insts...)
		}
		for k := range metrics {
			m := mmvimage.Metric{Name: fmt.Sprintf("m.n%04d", k), Item: uint32(k + 1), Type: mmvimage.U64, Sem: mmvimage.Counter, InDom: serial}
			for v := range max(instances, 1) {
				m.Values = append(m.Values, mmvimage.Int(int64(v)))
			}
			img = img.Metric(m)
		}
		if err := mmvimage.Write(filepath.Join(dir, fmt.Sprintf("f%d", i)), img.Build()); err != nil {
			tb.Fatal(err)
		}
	}
}

func BenchmarkFetch(b *testing.B) {
	for _, s := range []struct{ files, metrics, instances int }{{1, 10, 0}, {1, 1000, 0}, {100, 100, 0}, {200, 1000, 0}, {20, 20, 1000}, {1, 10, 10000}} {
		b.Run(fmt.Sprintf("%dx%dx%d", s.files, s.metrics, s.instances), func(b *testing.B) {
			dir := b.TempDir()
			writeSet(b, dir, s.files, s.metrics, s.instances)
			e, err := New(Options{Dir: dir, Domain: 70, PCPVersion: "7", FileMetrics: FileMetricsOff})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			sess := e.Open()
			defer sess.Close()
			var pmids []pcpwire.PMID
			for i := range s.files {
				for k := range s.metrics {
					pmids = append(pmids, pcpwire.NewPMID(70, uint32(100+i), uint32(k+1)))
				}
			}
			var rb pcpwire.ResultBuilder
			b.ReportAllocs()
			values := s.files * s.metrics * max(s.instances, 1)
			for b.Loop() {
				sess.Begin()
				if err := sess.Fetch(pmids, nil, &rb); err != nil {
					b.Fatal(err)
				}
				if _, err := rb.Finish(); err != nil {
					b.Fatal(err)
				}
				sess.End()
				sess.After()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(values), "ns/value")
		})
	}
}

func BenchmarkFetchOne(b *testing.B) {
	for _, files := range []int{1, 200, 1000} {
		b.Run(fmt.Sprintf("of%dfiles", files), func(b *testing.B) {
			dir := b.TempDir()
			writeSet(b, dir, files, 10, 0)
			e, err := New(Options{Dir: dir, Domain: 70, PCPVersion: "7", FileMetrics: FileMetricsOff})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			sess := e.Open()
			defer sess.Close()
			pmids := []pcpwire.PMID{pcpwire.NewPMID(70, 100, 1)}
			var rb pcpwire.ResultBuilder
			b.ReportAllocs()
			for b.Loop() {
				sess.Begin()
				if err := sess.Fetch(pmids, nil, &rb); err != nil {
					b.Fatal(err)
				}
				if _, err := rb.Finish(); err != nil {
					b.Fatal(err)
				}
				sess.End()
				sess.After()
			}
		})
	}
}
