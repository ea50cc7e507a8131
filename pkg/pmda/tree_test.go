package pmda_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"

	"github.com/google/go-cmp/cmp"
)

func build(t testing.TB, names ...string) *pmda.Tree {
	t.Helper()
	var b pmda.TreeBuilder
	for i, name := range names {
		if err := b.Add([]byte(name), pcpwire.PMID(i)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// list runs one of the methods that fill a NamesBuilder. Children that are no
// leaf have a dot behind them.
func list(t testing.TB, status bool, fill func(*pcpwire.NamesBuilder) error) ([]string, error) {
	t.Helper()
	var b pcpwire.NamesBuilder
	b.Begin(status)
	if err := fill(&b); err != nil {
		return nil, err
	}
	pdu, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var n pcpwire.Names
	if err := n.Decode(pdu[pcpwire.HeaderSize:]); err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, name := range n.Names {
		s := string(name)
		if status && n.Status[i] == pcpwire.NonLeaf {
			s += "."
		}
		out = append(out, s)
	}
	return out, nil
}

func children(t testing.TB, tree *pmda.Tree, name string) ([]string, error) {
	t.Helper()
	return list(t, true, func(b *pcpwire.NamesBuilder) error { return tree.Children(b, []byte(name), true) })
}

func traverse(t testing.TB, tree *pmda.Tree, prefix, name string) ([]string, error) {
	t.Helper()
	return list(t, false, func(b *pcpwire.NamesBuilder) error { return tree.Traverse(b, []byte(prefix), []byte(name)) })
}

// The order in libpcp's name space of the same names.
func TestTreeOrder(t *testing.T) {
	tree := build(t, "b.i32", "b.u32", "a.i64", "a.u64", "a.flt", "a.dbl", "str")
	for name, want := range map[string][]string{
		"":      {"str", "a.", "b."},
		"a":     {"dbl", "flt", "u64", "i64"},
		"b":     {"u32", "i32"},
		"a.i64": nil,
	} {
		got, err := children(t, tree, name)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("children of %q: %v (-want +got):\n%s", name, err, diff)
		}
	}
	want := []string{"x.str", "x.a.dbl", "x.a.flt", "x.a.u64", "x.a.i64", "x.b.u32", "x.b.i32"}
	got, err := traverse(t, tree, "x.", "")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("traverse: %v (-want +got):\n%s", err, diff)
	}
	got, err = traverse(t, tree, "", "b.u32")
	if diff := cmp.Diff([]string{"b.u32"}, got); diff != "" || err != nil {
		t.Errorf("traverse a leaf: %v (-want +got):\n%s", err, diff)
	}
	if tree.Len() != 7 {
		t.Errorf("%d leaves, want 7", tree.Len())
	}
}

func TestTreeLookUp(t *testing.T) {
	tree := build(t, "a.b.c", "ab", "a.bc")
	for name, want := range map[string]pcpwire.PMID{"a.b.c": 0, "ab": 1, "a.bc": 2} {
		if got, err := tree.PMID([]byte(name)); got != want || err != nil {
			t.Errorf("PMID(%q) = %v, %v; want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "a", "a.b", "a.", ".a", "a.b.", "a.b.c.", "a.b.c.d", "ab.", "abc", "a..b", "A", "\xff"} {
		if got, err := tree.PMID([]byte(name)); !errors.Is(err, pcpwire.ErrName) {
			t.Errorf("PMID(%q) = %v, %v; want PM_ERR_NAME", name, got, err)
		}
	}
	for _, name := range []string{"x", "a.", ".", "a.b.c.d"} {
		if got, err := children(t, tree, name); !errors.Is(err, pcpwire.ErrName) {
			t.Errorf("Children(%q) = %v, %v; want PM_ERR_NAME", name, got, err)
		}
		if got, err := traverse(t, tree, "", name); !errors.Is(err, pcpwire.ErrName) {
			t.Errorf("Traverse(%q) = %v, %v; want PM_ERR_NAME", name, got, err)
		}
	}
}

func TestTreeNames(t *testing.T) {
	var b pmda.TreeBuilder
	for _, name := range []string{"a.x", "b.y", "a.z", "c"} {
		id := pcpwire.PMID(1)
		if name == "c" {
			id = 2
		}
		if err := b.Add([]byte(name), id); err != nil {
			t.Fatal(err)
		}
	}
	tree := b.Build()
	for id, want := range map[pcpwire.PMID][]string{1: {"p.a.x", "p.a.z", "p.b.y"}, 2: {"p.c"}} {
		got, err := list(t, false, func(b *pcpwire.NamesBuilder) error { return tree.Names(b, []byte("p."), id) })
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("names of %d: %v (-want +got):\n%s", id, err, diff)
		}
	}
	_, err := list(t, false, func(b *pcpwire.NamesBuilder) error { return tree.Names(b, nil, 3) })
	wantErr(t, err, pcpwire.ErrPMID)
}

func TestEmptyTree(t *testing.T) {
	tree := new(pmda.TreeBuilder).Build()
	if got, err := children(t, tree, ""); got != nil || err != nil {
		t.Errorf("children %v, %v; want none", got, err)
	}
	if got, err := traverse(t, tree, "x.", ""); got != nil || err != nil {
		t.Errorf("traverse %v, %v; want none", got, err)
	}
	_, err := tree.PMID([]byte("a"))
	wantErr(t, err, pcpwire.ErrName)
	if tree.Len() != 0 {
		t.Errorf("%d leaves", tree.Len())
	}
}

func TestTreeRefusals(t *testing.T) {
	long := strings.Repeat("n", 65535)
	tests := []struct {
		name  string
		clash string
		err   error
	}{
		{"a.b", "a.b", pmda.ErrNameTaken},
		{"a", "a", pmda.ErrNameNonLeaf},
		{"d.e", "d.e", pmda.ErrNameNonLeaf},
		{"a.b.c", "a.b", pmda.ErrNameBelowLeaf},
		{"a.b.c.d.e", "a.b", pmda.ErrNameBelowLeaf},
		{"x.y", "x", pmda.ErrNameBelowLeaf},
		{"", "", pmda.ErrNameComponent},
		{".", "", pmda.ErrNameComponent},
		{".b", "", pmda.ErrNameComponent},
		{"b.", "", pmda.ErrNameComponent},
		{"b..c", "", pmda.ErrNameComponent},
		{"b.c-d.e", "c-d", pmda.ErrNameComponent},
		{"b c", "b c", pmda.ErrNameComponent},
		{"é", "é", pmda.ErrNameComponent},
		{"b.\x00", "\x00", pmda.ErrNameComponent},
		{long + "n", "", pmda.ErrNameSpaceFull},
	}
	var b pmda.TreeBuilder
	good := []string{"a.b", "d.e.f", "x", "0._9", long}
	for i, name := range good {
		if err := b.Add([]byte(name), pcpwire.PMID(i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range tests {
		err := b.Add([]byte(tt.name), 99)
		e, ok := errors.AsType[*pmda.NameError](err)
		if !ok || !errors.Is(err, tt.err) || e.Clash != tt.clash || e.Name != tt.name {
			t.Errorf("Add(%.20q): %.80v; want %v: %q", tt.name, err, tt.err, tt.clash)
		}
	}
	tree := b.Build()
	slices.Reverse(good)
	if got, err := traverse(t, tree, "", ""); !slices.Equal(got, good) || err != nil || tree.Len() != len(good) {
		t.Errorf("refused names left something behind: %d leaves, %v", tree.Len(), err)
	}
	if got := b.Build().Len(); got != 0 {
		t.Errorf("builder has %d leaves after Build", got)
	}
}

// node is a name space as libpcp has it, with its walk from sibling to sibling.
type node struct {
	name string
	pmid *pcpwire.PMID
	kids []*node
}

func (n *node) add(name string, id pcpwire.PMID) bool {
	first, rest, more := strings.Cut(name, ".")
	i := slices.IndexFunc(n.kids, func(k *node) bool { return k.name == first })
	if i < 0 {
		n.kids = slices.Insert(n.kids, 0, &node{name: first})
		i = 0
		if !more {
			n.kids[0].pmid = &id
			return true
		}
	} else if n.kids[i].pmid != nil || !more {
		return false
	}
	return n.kids[i].add(rest, id)
}

func (n *node) find(name string) *node {
	for _, k := range n.kids {
		rest, ok := strings.CutPrefix(name, k.name)
		switch {
		case ok && rest == "":
			return k
		case ok && rest[0] == '.' && k.pmid == nil:
			return k.find(rest[1:])
		}
	}
	return nil
}

func (n *node) leaves(prefix string) []string {
	if n.pmid != nil {
		return []string{prefix}
	}
	var all []string
	for _, k := range n.kids {
		all = append(all, k.leaves(prefix+"."+k.name)...)
	}
	return all
}

func TestTreeLikeLibpcp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same names each time
	name := func() string {
		comps := make([]string, 1+rnd.IntN(4))
		for i := range comps {
			comps[i] = []string{"a", "ab", "b", "ba", "c"}[rnd.IntN(5)]
		}
		return strings.Join(comps, ".")
	}
	for range 200 {
		var b pmda.TreeBuilder
		root := &node{}
		for i := range 60 {
			n := name()
			want := root.add(n, pcpwire.PMID(i))
			if err := b.Add([]byte(n), pcpwire.PMID(i)); (err == nil) != want {
				t.Fatalf("Add(%q): %v; want ok %v", n, err, want)
			}
		}
		tree := b.Build()
		for range 100 {
			n := name()
			want := root.find(n)
			got, err := tree.PMID([]byte(n))
			if ok := want != nil && want.pmid != nil; ok != (err == nil) || ok && got != *want.pmid {
				t.Fatalf("PMID(%q) = %v, %v; want %+v", n, got, err, want)
			}
			all, err := traverse(t, tree, "", n)
			if want == nil != (err != nil) || want != nil && !slices.Equal(all, want.leaves(n)) {
				t.Fatalf("Traverse(%q) = %v, %v; want %+v", n, all, err, want)
			}
			kids, err := children(t, tree, n)
			if want == nil != (err != nil) || want != nil && !slices.Equal(kids, want.show()) {
				t.Fatalf("Children(%q) = %v, %v; want %+v", n, kids, err, want)
			}
		}
	}
}

func (n *node) show() []string {
	var out []string
	for _, k := range n.kids {
		if k.pmid == nil {
			out = append(out, k.name+".")
		} else {
			out = append(out, k.name)
		}
	}
	return out
}

func manyNames(n int) [][]byte {
	names := make([][]byte, n)
	for i := range names {
		names[i] = fmt.Appendf(nil, "group.metric_number_%04d", i)
	}
	return names
}

func BenchmarkTreeBuild1000(b *testing.B) {
	names := manyNames(1000)
	b.ReportAllocs()
	for b.Loop() {
		var tb pmda.TreeBuilder
		for i, n := range names {
			if err := tb.Add(n, pcpwire.PMID(i)); err != nil {
				b.Fatal(err)
			}
		}
		tb.Build()
	}
}

func BenchmarkTreePMID1000(b *testing.B) {
	names := manyNames(1000)
	var tb pmda.TreeBuilder
	for i, n := range names {
		if err := tb.Add(n, pcpwire.PMID(i)); err != nil {
			b.Fatal(err)
		}
	}
	tree := tb.Build()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := tree.PMID(names[i%1000]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTreeTraverse1000(b *testing.B) {
	var tb pmda.TreeBuilder
	for i, n := range manyNames(1000) {
		if err := tb.Add(n, pcpwire.PMID(i)); err != nil {
			b.Fatal(err)
		}
	}
	tree := tb.Build()
	var nb pcpwire.NamesBuilder
	prefix := []byte("sample.")
	b.ReportAllocs()
	for b.Loop() {
		nb.Begin(false)
		if err := tree.Traverse(&nb, prefix, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestGrow: what a builder has been told to expect makes no difference.
func TestGrow(t *testing.T) {
	build := func(grow func(b *pmda.TreeBuilder)) *pmda.Tree {
		var b pmda.TreeBuilder
		for i := range 100 {
			if i%40 == 0 {
				grow(&b)
			}
			if err := b.Add(fmt.Appendf(nil, "a%d.b%d", i%7, i), pcpwire.PMID(i)); err != nil {
				t.Fatal(err)
			}
		}
		return b.Build()
	}
	list := func(tree *pmda.Tree) []byte {
		var nb pcpwire.NamesBuilder
		nb.Begin(false)
		if err := tree.Traverse(&nb, nil, nil); err != nil {
			t.Fatal(err)
		}
		pdu, err := nb.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(pdu)
	}
	want := list(build(func(*pmda.TreeBuilder) {}))
	for _, n := range []int{0, 1, 7, 50, 100, 5000} {
		tree := build(func(b *pmda.TreeBuilder) { b.Grow(n, 8*n) })
		if !bytes.Equal(list(tree), want) {
			t.Errorf("Grow(%d): other names", n)
		}
		for i := range 100 {
			if id, err := tree.PMID(fmt.Appendf(nil, "a%d.b%d", i%7, i)); err != nil || id != pcpwire.PMID(i) {
				t.Errorf("Grow(%d): name %d is %v, %v", n, i, id, err)
			}
		}
	}
}
