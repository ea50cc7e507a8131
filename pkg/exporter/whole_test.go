package exporter

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// wholeImage is a file of so many values that they and the instances are read
// when they are asked for. Instance i is named name and i; one has no name.
func wholeImage(name string) []byte {
	img := mmvimage.New(2).Cluster(9).Flags(mmvimage.NoPrefix)
	m := mmvimage.Metric{Name: "m", Item: 1, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 1}
	list := make([]mmvimage.Inst, 5000)
	for i := range list {
		list[i] = mmvimage.Inst{ID: int32(i), Name: fmt.Sprint(name, i)}
		m.Values = append(m.Values, mmvimage.Int(int64(i)))
	}
	list[17].Name = ""
	return img.InDom(1, "", "", list...).Metric(m).Build()
}

// TestUnlocked checks that no answer waits for the Exporter's lock between Begin
// and End: who has that may wait for End.
func TestUnlocked(t *testing.T) {
	dir := t.TempDir()
	ok(t, mmvimage.Write(filepath.Join(dir, "f"), wholeImage("x")))
	e, err := New(Options{Dir: dir, Domain: 70, PCPVersion: "7.2.1"})
	ok(t, err)
	defer e.Close()
	s := e.Open()
	defer s.Close()
	s.Begin()
	e.mu.Lock()
	p, err := s.PMID([]byte("mmv.m"))
	ok(t, err)
	d, err := s.Desc(p)
	ok(t, err)
	var b pcpwire.ResultBuilder
	ok(t, s.Fetch([]pcpwire.PMID{p}, nil, &b))
	in, err := s.Instances(d.InDom)
	ok(t, err)
	if in.Len() != 4999 {
		t.Errorf("%d instances", in.Len())
	}
	_ = s.Labels(nil, pcpwire.LabelInstances, uint32(d.InDom), 3)
	e.mu.Unlock()
	s.End()
	s.After()
}

// TestUnreadable checks that a file that cannot be read when a Table is made with
// it, and is as it was when that is over, becomes part of the next.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	f, g := filepath.Join(dir, "f"), filepath.Join(dir, "g")
	ok(t, mmvimage.Write(f, wholeImage("x")))
	e, err := New(Options{Dir: dir, Domain: 70, PCPVersion: "7.2.1"})
	ok(t, err)
	defer e.Close()
	e.Refresh()
	ok(t, mmvimage.Write(g, wholeImage("y")))
	e.mu.Lock()
	snap := e.dir.Look()
	ok(t, os.Rename(f, f+".away"))
	e.publish(e.table.Load(), snap)
	ok(t, os.Rename(f+".away", f))
	e.mu.Unlock()
	s := e.Open()
	defer s.Close()
	s.Begin()
	defer s.End()
	p, err := s.PMID([]byte("mmv.m"))
	ok(t, err)
	d, err := s.Desc(p)
	ok(t, err)
	in, err := s.Instances(d.InDom)
	ok(t, err)
	var b pcpwire.ResultBuilder
	ok(t, s.Fetch([]pcpwire.PMID{p}, nil, &b))
	pdu, err := b.Finish()
	ok(t, err)
	var r pcpwire.Result
	ok(t, r.Decode(pdu[pcpwire.HeaderSize:]))
	if n := int(r.Sets[0].NumVal); n != in.Len() || n != 4999 {
		t.Errorf("%d values of %d instances", n, in.Len())
	}
	if _, name := in.At(7); string(name) != "x7" {
		t.Errorf("instance 7 is %s", name)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
