package exporter

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"weak"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/test/mmvimage"
)

// numbers is a file of n metrics, each with an indom of its own from that serial on.
func numbers(n int, serial uint32) *mmvimage.Image {
	img := mmvimage.New(1)
	for i := range uint32(n) {
		img.InDom(serial+i, "", "", mmvimage.Inst{ID: 1, Name: "a"})
		img.Metric(mmvimage.Metric{Name: fmt.Sprint("m", i), Item: i, Type: mmvimage.U64, InDom: int32(serial + i), Values: []mmvimage.Value{mmvimage.Uint(1)}})
	}
	return img
}

func exporterOf(t *testing.T, dir string) *Exporter {
	t.Helper()
	e, err := New(Options{Dir: dir, Domain: 70})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// One file that is always there, each time with indoms of other serials: what is kept
// of them is bounded, and those that it still has keep their numbers.
func TestInDomsOfOneFile(t *testing.T) {
	dir := t.TempDir()
	e := exporterOf(t, dir)
	var kept uint32
	for round := range uint32(maxInDoms/1000 + 5) {
		img := numbers(1000, 2000+1000*round).Cluster(7).Generation(uint64(round + 1))
		img.InDom(1, "", "", mmvimage.Inst{ID: 1, Name: "a"}).
			Metric(mmvimage.Metric{Name: "kept", Item: 1010, Type: mmvimage.U64, InDom: 1, Values: []mmvimage.Value{mmvimage.Uint(1)}})
		if err := mmvimage.Write(filepath.Join(dir, "a"), img.Build()); err != nil {
			t.Fatal(err)
		}
		e.Refresh()
		if n := e.table.Load().clusters.at(7).indomNumber(0, 1); round == 0 {
			kept = n
		} else if n != kept {
			t.Fatalf("round %d: number %d instead of %d", round, n, kept)
		}
	}
	if n := len(e.reg.indoms); n > maxInDoms {
		t.Errorf("%d indoms are kept, at most %d should be", n, maxInDoms)
	}
	registryCheck(t, e.reg)
}

// Files with names of their own, each rewritten during one fetch: a session does not
// keep them all.
func TestRestlessIsBounded(t *testing.T) {
	dir := t.TempDir()
	e := exporterOf(t, dir)
	s := e.Open().(*session) //nolint:forcetypeassert // it is
	defer s.Close()
	var b pcpwire.ResultBuilder
	for i := range 3 * restlessFor {
		path := filepath.Join(dir, fmt.Sprint("app_", i))
		write := func(metrics int) {
			if err := os.WriteFile(path, numbers(metrics, 1).Build(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(1)
		s.Begin()
		write(2)
		if err := s.Fetch([]pcpwire.PMID{1}, nil, &b); err != nil {
			t.Fatal(err)
		}
		s.End()
		s.After()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if n := len(s.restless); n > restlessFor+1 {
			t.Fatalf("%d names of files are kept, of which one is there", n)
		}
	}
}

// A connection that asks nothing keeps nothing of what has been replaced.
func TestIdleSession(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := mmvimage.Write(path, numbers(100, 1).Cluster(1).Build()); err != nil {
		t.Fatal(err)
	}
	e := exporterOf(t, dir)
	var sessions []pmda.Session
	var pmids []pcpwire.PMID
	for i := range uint32(100) {
		pmids = append(pmids, pcpwire.NewPMID(70, 1, i))
	}
	ask := func(f func(s pmda.Session) error) {
		s := e.Open()
		sessions = append(sessions, s)
		s.Begin()
		if err := f(s); err != nil {
			t.Fatal(err)
		}
		s.End()
		s.After()
	}
	var b pcpwire.ResultBuilder
	ask(func(s pmda.Session) error { return s.Fetch(pmids, nil, &b) })
	ask(func(s pmda.Session) error { return s.Fetch(pmids[:1], nil, &b) })
	ask(func(s pmda.Session) error {
		_, err := s.Instances(pcpwire.NewInDom(70, canonical(1, 1)))
		return err
	})
	table, cat := weak.Make(e.table.Load()), weak.Make(e.table.Load().list[0].cat)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	e.Refresh()
	runtime.GC()
	runtime.GC()
	if table.Value() != nil || cat.Value() != nil {
		t.Errorf("still there: Table %v, Catalog %v", table.Value() != nil, cat.Value() != nil)
	}
	for _, s := range sessions {
		s.Close()
	}
}
