package exporter_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// node is a name space as libpcp_pmda builds it: a new name goes to the front
// of its siblings.
type node struct {
	name     string
	leaf     bool
	children []*node
}

// insert adds a leaf unless its name is taken or in the way of others.
func (n *node) insert(name string) bool {
	at := n
	comps := strings.Split(name, ".")
	for i, c := range comps {
		if at.leaf {
			return false
		}
		k := slices.IndexFunc(at.children, func(o *node) bool { return o.name == c })
		if k < 0 {
			for _, c := range comps[i:] {
				child := &node{name: c}
				at.children = slices.Insert(at.children, 0, child)
				at = child
			}
			at.leaf = true
			return true
		}
		at = at.children[k]
	}
	return false
}

func (n *node) traverse(prefix string) (out []string) {
	if n.leaf {
		return []string{prefix}
	}
	for _, c := range n.children {
		out = append(out, c.traverse(prefix+"."+c.name)...)
	}
	return out
}

// same compares a name space, node by node.
func (n *node) same(b *box, name string) {
	var want []string
	for _, c := range n.children {
		s := c.name
		if !c.leaf {
			s += "/"
		}
		want = append(want, s)
	}
	got, err := b.children(name)
	if err != nil {
		b.Errorf("children of %s: %v", name, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("children of %s (-want +got):\n%s", name, diff)
	}
	all, err := b.traverse(name)
	if diff := cmp.Diff(n.traverse(name), all); diff != "" || err != nil {
		b.Errorf("leaves below %s: %v (-want +got):\n%s", name, err, diff)
	}
	if p, err := b.lookup(name); (err == nil) != n.leaf {
		b.Errorf("%s is %v, %v", name, p, err)
	}
	for _, bad := range []string{name + ".", name + "..x", name + ".nosuch", name + "x", strings.ToUpper(name)} {
		if _, err := b.lookup(bad); !errors.Is(err, pcpwire.ErrName) {
			b.Errorf("%q: %v", bad, err)
		}
		if _, err := b.children(bad); !errors.Is(err, pcpwire.ErrName) {
			b.Errorf("children of %q: %v", bad, err)
		}
		if _, err := b.traverse(bad); !errors.Is(err, pcpwire.ErrName) {
			b.Errorf("traverse %q: %v", bad, err)
		}
	}
	for _, c := range n.children {
		c.same(b, name+"."+c.name)
	}
}

// TestNameSpace compares the name space of random files with that of libpcp.
func TestNameSpace(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // repeatable
		b := newBox(t, func(o *exporter.Options) { o.PCPVersion, o.FileMetrics = "6.0.3", exporter.FileMetricsOff })
		files := map[string][]string{}
		flags := map[string]int32{}
		pick := func(list ...string) string { return list[r.IntN(len(list))] }
		put := func() {
			name := pick("a", "b", "c", "a.b", "a.b.c", "b.x", "x", "y9", "_z", "0")
			if files[name] != nil && r.IntN(3) == 0 {
				b.remove(name)
				delete(files, name)
				return
			}
			flags[name] = int32(r.IntN(2)) * mmvimage.NoPrefix
			img := mmvimage.New(2).Cluster(int32(100 + strings.Index("a b c a.b a.b.c b.x x y9 _z 0", name))).Flags(flags[name])
			files[name] = []string{}
			for i := range r.IntN(6) {
				m := pick("x", "x.y", "x.y.z", "y", "a", "a.b", "b.c", "c", "c.d.e", "9", "_", "a..b", ".a", "a.", "b-c", "", "é")
				files[name] = append(files[name], m)
				img.Metric(metric(m, uint32(i), 1))
			}
			b.put(name, img)
		}
		for range 4 {
			put()
		}
		b.start()
		for range 6 {
			root := &node{name: "mmv"}
			for _, c := range []string{"control.reload", "control.debug", "control.files"} {
				root.insert(c)
			}
			for _, f := range slices.Sorted(maps.Keys(files)) {
				own := &node{} // a metric that is in the way in its own file is not exported even if it were not in the way of others
				for _, m := range files[f] {
					if strings.Trim(m, "abcdexyz.9_") != "" || slices.Contains(strings.Split(m, "."), "") || !own.insert(m) {
						continue
					}
					if flags[f] == 0 {
						m = f + "." + m
					}
					root.insert(m)
				}
			}
			root.same(b, "mmv")
			if t.Failed() {
				t.Fatalf("seed %d: %v %v", seed, files, flags)
			}
			put()
		}
		b.stop()
	}
}

// TestNameRules has one file, and beside it another one or none.
func TestNameRules(t *testing.T) {
	named := func(names ...string) *mmvimage.Image {
		img := mmvimage.New(2)
		for i, n := range names {
			img.Metric(metric(n, uint32(i+1), 1))
		}
		return img
	}
	plain := func(names ...string) *mmvimage.Image { return named(names...).Flags(mmvimage.NoPrefix) }
	tests := []struct {
		name     string
		file     string
		image    *mmvimage.Image
		other    string
		beside   *mmvimage.Image
		names    string
		status   string // of file
		sanitize bool
	}{
		{name: "all that may be", file: "Az_09", image: named("b_9.0", "_x"), names: "mmv.Az_09._x mmv.Az_09.b_9.0"},
		{name: "a dotted file name", file: "a.b", image: named("m"), names: "mmv.a.b.m"},
		{name: "a dash", file: "client-123", image: named("m"), status: `rejected: file name cannot be part of a metric name: "client-123"`},
		{name: "not ASCII", file: "ü", image: named("m"), status: `rejected: file name cannot be part of a metric name: "ü"`},
		{name: "not UTF-8", file: "a\xff", image: named("m"), status: `rejected: file name cannot be part of a metric name: "a\xff"`},
		{name: "an empty component", file: "a..b", image: named("m"), status: `rejected: file name cannot be part of a metric name: "a..b"`},
		{name: "a dot at the end", file: "a.", image: named("m"), status: `rejected: file name cannot be part of a metric name: "a."`},
		{name: "any name without prefix", file: "client-123..", image: plain("m"), names: "mmv.m"},
		{name: "sanitized", file: "cli-ent é", image: named("m"), names: "mmv.cli_ent___.m", sanitize: true},
		{name: "sanitized, still empty", file: "a..b", image: named("m"), status: `rejected: file name cannot be part of a metric name: "a..b"`, sanitize: true},
		{
			name: "two sanitized to one", file: "a-b", image: named("m", "n"), other: "a_b", beside: named("m", "o"), sanitize: true,
			names: "mmv.a_b.o mmv.a_b.n mmv.a_b.m",
		},
		{
			name: "two sanitized to one, the second", file: "a_b", image: named("m", "o"), other: "a-b", beside: named("m", "n"), sanitize: true,
			names: "mmv.a_b.o mmv.a_b.n mmv.a_b.m", status: `loaded, 1 metric not exported: metric[0] m: name "a_b.m": name is taken: "a_b.m" of "a-b"`,
		},
		{name: "the agent's own", file: "control", image: named("m"), status: `rejected: name is the agent's own: "control"`},
		{name: "below the agent's own", file: "control.x", image: named("m"), status: `rejected: name is the agent's own: "control.x"`},
		{name: "not the agent's own", file: "controls", image: named("control"), names: "mmv.controls.control"},
		{
			name: "the agent's own without prefix", file: "f", image: plain("control", "control.files", "control.x.y", "controls"), names: "mmv.controls",
			status: `loaded, 3 metrics not exported: metric[0] control: name is the agent's own; metric[1] control.files: name is the agent's own; metric[2] control.x.y: name is the agent's own`,
		},
		{
			name: "empty components", file: "f", image: named("a..b", ".a", "a.", "a", "."), names: "mmv.f.a",
			status: `loaded, 4 metrics not exported: metric[0] a..b: name "a..b": bad name component: ""; metric[1] .a: name ".a": bad name component: ""; ` +
				`metric[2] a.: name "a.": bad name component: ""; metric[4] .: name ".": bad name component: ""`,
		},
		{
			name: "bytes", file: "f", image: named("a\x1b[31m", "a b", "ok"), names: "mmv.f.ok",
			status: `loaded, 2 metrics not exported: metric[0] a\x1b[31m: name "a\x1b[31m": bad name component: "a\x1b[31m"; ` +
				`metric[1] a b: name "a b": bad name component: "a b"`,
		},
		{
			name: "leaf and non-leaf", file: "f", image: named("x", "x.y", "z.a", "z"), names: "mmv.f.z.a mmv.f.x",
			status: `loaded, 2 metrics not exported: metric[1] x.y: name "x.y": name is below a leaf: "x"; metric[3] z: name "z": name is a non-leaf: "z"`,
		},
		{
			name: "twice", file: "f", image: named("x", "x"), names: "mmv.f.x",
			status: `loaded, 1 metric not exported: metric[1] x: name "x": name is taken: "x"`,
		},
		{
			name: "taken by another file", file: "g", image: plain("x", "y"), other: "f", beside: plain("x"), names: "mmv.y mmv.x",
			status: `loaded, 1 metric not exported: metric[0] x: name "x": name is taken: "x" of "f"`,
		},
		{
			name: "below another file's leaf", file: "g", image: plain("x.a.b", "y"), other: "f", beside: plain("x"), names: "mmv.y mmv.x",
			status: `loaded, 1 metric not exported: metric[0] x.a.b: name "x.a.b": name is below a leaf: "x" of "f"`,
		},
		{
			name: "another file's non-leaf", file: "g", image: plain("x", "y"), other: "f", beside: plain("x.a.b"), names: "mmv.y mmv.x.a.b",
			status: `loaded, 1 metric not exported: metric[0] x: name "x": name is a non-leaf: "x" of "f"`,
		},
		{
			name: "a file's name is another's leaf", file: "x", image: named("a"), other: "f", beside: plain("x"), names: "mmv.x",
			status: `loaded, 1 metric not exported: metric[0] a: name "x.a": name is below a leaf: "x" of "f"`,
		},
		{
			name: "a leaf that is another file's name", file: "y", image: plain("x", "z"), other: "x", beside: named("a"), names: "mmv.z mmv.x.a",
			status: `loaded, 1 metric not exported: metric[0] x: name "x": name is a non-leaf: "x" of "x"`,
		},
		{
			name: "below another file's name", file: "y", image: plain("x.b", "x.a"), other: "x", beside: named("a"), names: "mmv.x.b mmv.x.a",
			status: `loaded, 1 metric not exported: metric[1] x.a: name "x.a": name is taken: "x.a" of "x"`,
		},
		{
			name: "dotted name below another file", file: "x.y", image: named("a", "b.c"), other: "x", beside: named("y.a", "y.b"), names: "mmv.x.y.b mmv.x.y.a",
			status: `loaded, 2 metrics not exported: metric[0] a: name "x.y.a": name is taken: "x.y.a" of "x"; metric[1] b.c: name "x.y.b.c": name is below a leaf: "x.y.b" of "x"`,
		},
		{
			name: "all taken", file: "g", image: plain("x"), other: "f", beside: plain("x", "y"), names: "mmv.y mmv.x",
			status: `loaded, 1 metric not exported: metric[0] x: name "x": name is taken: "x" of "f"`,
		},
		{name: "no metrics", file: "f", image: named()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t, func(o *exporter.Options) { o.SanitizeNames = tt.sanitize })
			b.put(tt.file, tt.image)
			if tt.beside != nil {
				b.put(tt.other, tt.beside)
			}
			b.start()
			equal(t, "names", strings.Join(b.names(), " "), tt.names)
			st := b.statuses()
			var got string
			if s, ok := st[visible(tt.file)]; ok {
				got = s
			}
			equal(t, "status", got, tt.status)
		})
	}
}

// visible is how the names of the tests' files are shown.
func visible(name string) string { return strings.ReplaceAll(name, "\xff", `\xff`) }

// A file all of whose metrics are another's in their cluster leaves no trace in
// the name space.
func TestNoNamesLeft(t *testing.T) {
	b := newBox(t)
	b.put("a", worker(9, metric("x.m", 1, 1), metric("both", 3, 1)))
	b.put("b", worker(9, metric("y.m", 1, 1), metric("both", 3, 1)))
	b.start()
	equal(t, "names", strings.Join(b.names(), " "), "mmv.both mmv.x.m")
	got, err := b.children("mmv")
	equal(t, "children", fmt.Sprint(got, err), "[both x/ control/] <nil>")
}
