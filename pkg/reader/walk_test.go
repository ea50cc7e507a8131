package reader_test

import (
	"slices"
	"testing"

	"pmdammv/pkg/reader"
)

// walk goes through all of a Catalog of an image of that size and checks what
// must hold for any.
func walk(t testing.TB, c *reader.Catalog, size int) {
	t.Helper()
	text := func(x reader.Text) {
		if n := len(c.Text(x)); n > 255 {
			t.Fatalf("a text of %d bytes", n)
		}
		for _, b := range c.Text(x) {
			if b == 0 {
				t.Fatal("a text with a NUL")
			}
		}
	}
	if c.Size != uint64(size) {
		t.Fatalf("size %d of %d", c.Size, size)
	}
	serials := map[uint32]bool{}
	for i := range c.InDoms {
		d := &c.InDoms[i]
		if serials[d.Serial] {
			t.Fatalf("serial %d twice", d.Serial)
		}
		serials[d.Serial] = true
		text(d.Short)
		text(d.Help)
		unique(t, c.Instances(d))
		for _, in := range c.Instances(d) {
			text(in.External)
			if in.Internal == -1 || len(c.Text(in.External)) == 0 {
				t.Fatalf("instance %d %q", in.Internal, c.Text(in.External))
			}
			c.InstanceLabels(d.Serial, in.Internal, func(l *reader.Label) {
				if l.Identity != d.Serial || l.Internal != in.Internal || l.Flags&reader.LabelInstances == 0 {
					t.Fatalf("label %+v for indom %d instance %d", l, d.Serial, in.Internal)
				}
			})
		}
	}
	for i := range c.Metrics {
		m := &c.Metrics[i]
		text(m.Name)
		text(m.Short)
		text(m.Help)
		if m.InDom >= 0 && c.InDoms[m.InDom].Serial != uint32(m.Serial) {
			t.Fatalf("metric %d: indom %d is not that of serial %d", i, m.InDom, m.Serial)
		}
		if m.Singular() && m.InDom >= 0 {
			t.Fatalf("metric %d is singular and has an indom", i)
		}
		checkValues(t, c, m, size)
	}
	for i := range c.Labels {
		text(c.Labels[i].Payload)
	}
	for _, r := range c.Remarks {
		if r.Error() == "" || r.Err == nil {
			t.Fatalf("remark %+v", r)
		}
	}
	if len(c.Remarks) > reader.MaxRemarks || len(c.Remarks) > c.RemarkCount {
		t.Fatalf("%d remarks of %d", len(c.Remarks), c.RemarkCount)
	}
	if c.Memory() > 3*size+4096 {
		t.Fatalf("%d bytes for an image of %d", c.Memory(), size)
	}
	if !c.Equal(c) {
		t.Fatal("a catalog does not equal itself")
	}
}

func unique(t testing.TB, insts []reader.Instance) {
	t.Helper()
	ids := map[int32]bool{}
	for _, in := range insts {
		if ids[in.Internal] {
			t.Fatalf("instance %d twice", in.Internal)
		}
		ids[in.Internal] = true
	}
}

// checkValues: inside the file, in the order of the indom, one each.
func checkValues(t testing.TB, c *reader.Catalog, m *reader.Metric, size int) {
	t.Helper()
	all := c.Values(m)
	refs := slices.Collect(all.All())
	for _, r := range refs {
		if uint64(r.Off)+reader.ValueSize > uint64(size) {
			t.Fatalf("a value at %d in %d bytes", r.Off, size)
		}
	}
	switch {
	case m.Singular():
		if len(refs) > 1 || len(refs) == 1 && refs[0].Inst != -1 {
			t.Fatalf("values %v of a singular metric", refs)
		}
	case m.InDom < 0:
		if len(refs) > 0 {
			t.Fatalf("values %v without an indom", refs)
		}
	default:
		insts := c.Instances(&c.InDoms[m.InDom])
		for _, r := range refs {
			for len(insts) > 0 && insts[0].Internal != r.Inst {
				insts = insts[1:]
			}
			if len(insts) == 0 {
				t.Fatalf("value of instance %d: not in the order of the indom, or twice", r.Inst)
			}
			insts = insts[1:]
		}
	}
}
