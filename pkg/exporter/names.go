package exporter

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

// nameSpace is the PMNS of a Table. What lies below a file's own component is
// that file's tree; all other names are in one tree, joined.
type nameSpace struct {
	root   []byte     // "mmv"
	tops   []top      // first components in order of insertion; siblings are shown in the reverse
	plain  []top      // those with a tree of their own, by name
	joined *pmda.Tree // names below the root
	from   []*file    // whose names are in joined, besides the control metrics
	firsts [][]string // for each of them, the first components that are there by it
}

// top is a first component below the root.
type top struct {
	name string
	tree *pmda.Tree   // nil: in joined
	base pcpwire.PMID // of the tree's items
}

// find splits a name into the tree that has it, what to put before that tree's
// names, the rest of the name, and the base of its PMIDs. The root itself has
// no tree and no error.
func (n *nameSpace) find(name []byte) (t *pmda.Tree, prefix int, rest []byte, base pcpwire.PMID, err error) {
	if !bytes.HasPrefix(name, n.root) || len(name) > len(n.root) && name[len(n.root)] != '.' {
		return nil, 0, nil, 0, pcpwire.ErrName
	}
	if len(name) == len(n.root) {
		return nil, 0, nil, 0, nil
	}
	below := name[len(n.root)+1:]
	comp, rest, more := bytes.Cut(below, []byte{'.'})
	if i, ok := slices.BinarySearchFunc(n.plain, comp, func(t top, c []byte) int { return strings.Compare(t.name, string(c)) }); ok {
		if more && len(rest) == 0 {
			return nil, 0, nil, 0, pcpwire.ErrName
		}
		return n.plain[i].tree, len(n.root) + 1 + len(comp) + 1, rest, n.plain[i].base, nil
	}
	if len(below) == 0 {
		return nil, 0, nil, 0, pcpwire.ErrName
	}
	return n.joined, len(n.root) + 1, below, 0, nil
}

func (n *nameSpace) pmid(name []byte) (pcpwire.PMID, error) {
	t, _, rest, base, err := n.find(name)
	if err != nil || t == nil || len(rest) == 0 {
		return pcpwire.PMIDNull, pcpwire.ErrName
	}
	p, err := t.PMID(rest)
	return base | p, err
}

func (n *nameSpace) children(b *pcpwire.NamesBuilder, name []byte, status bool) error {
	t, _, rest, _, err := n.find(name)
	if err != nil {
		return err
	}
	if t != nil {
		return t.Children(b, rest, status)
	}
	for _, v := range slices.Backward(n.tops) {
		c := []byte(v.name)
		switch {
		case !status:
			b.Add(nil, c)
		case v.tree == nil && n.leaf(c):
			b.AddStatus(c, pcpwire.Leaf)
		default:
			b.AddStatus(c, pcpwire.NonLeaf)
		}
	}
	return nil
}

func (n *nameSpace) leaf(name []byte) bool {
	_, err := n.joined.PMID(name)
	return err == nil
}

func (n *nameSpace) traverse(b *pcpwire.NamesBuilder, name []byte) error {
	t, prefix, rest, _, err := n.find(name)
	if err != nil {
		return err
	}
	if t != nil {
		if t != n.joined && len(rest) == 0 {
			return t.Traverse(b, append(bytes.Clone(name), '.'), nil)
		}
		return t.Traverse(b, name[:prefix:prefix], rest)
	}
	root := append(bytes.Clone(n.root), '.')
	for _, c := range slices.Backward(n.tops) {

		if c.tree == nil {
			err = n.joined.Traverse(b, root, []byte(c.name))
		} else {
			err = c.tree.Traverse(b, append(append(bytes.Clone(root), c.name...), '.'), nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// top finds the first components below the root, in load order, and those of
// them that are one plain file's, by name.
func (n *nameSpace) top(files []*file, clusters *clusterSet, domain uint32) {
	n.tops = append(make([]top, 0, len(files)+1), top{name: "control"})
	n.plain = make([]top, 0, len(files))
	next := 0
	for _, f := range files {
		if f.cluster == 0 {
			continue
		}
		if next < len(n.from) && n.from[next] == f {
			for _, t := range n.firsts[next] {
				n.tops = append(n.tops, top{name: t})
			}
			next++
			continue
		}
		if len(f.tops) == 0 {
			continue
		}
		tree := clusters.at(f.cluster).tree(f)
		if tree.Len() == 0 {
			continue
		}
		t := top{f.tops[0], tree, pcpwire.NewPMID(domain, f.cluster, 0)}
		n.tops = append(n.tops, t)
		n.plain = append(n.plain, t)
	}
	byName := func(i, j int) bool { return n.plain[i].name < n.plain[j].name }
	if !sort.SliceIsSorted(n.plain, byName) {
		sort.Slice(n.plain, byName)
	}
}

// joins finds the files whose names must be joined: those without a component
// of their own, or with one that another file has as well.
func joins(files []*file, sanitize bool) (out []*file) {
	shared := map[string]bool{"control": true}
	for _, f := range files {
		if !f.plain && f.cluster != 0 {
			for _, t := range f.tops {
				shared[t] = true
			}
		}
	}
	if sanitize { // two names may have become one
		seen := map[string]bool{}
		for _, f := range files {
			if f.plain && f.cluster != 0 && len(f.tops) > 0 {
				shared[f.tops[0]] = shared[f.tops[0]] || seen[f.tops[0]]
				seen[f.tops[0]] = true
			}
		}
	}
	if len(shared) == 1 && len(files) > 0 && !slices.ContainsFunc(files, func(f *file) bool { return !f.plain }) {
		return nil
	}
	for _, f := range files {
		if f.cluster == 0 {
			continue
		}
		if !f.plain || len(f.tops) > 0 && shared[f.tops[0]] {
			out = append(out, f)
		}
	}
	return out
}

// joiner makes the joined tree.
type joiner struct {
	b        pmda.TreeBuilder
	files    []*file
	clusters *clusterSet
	seen     map[string]bool // first components
	added    []part          // in the order of insertion; file is an index in files
	owners   map[string]int  // file of each name and inner node of the first known of added
	known    int
}

// join makes the joined tree: the control metrics, then the files in load
// order. A metric whose name is taken is excluded from its cluster. tops are
// the first components that each file's names are the first to have.
func join(control []controlMetric, domain uint32, files []*file, clusters *clusterSet) (t *pmda.Tree, tops [][]string) {
	j := &joiner{files: files, clusters: clusters, seen: map[string]bool{"control": true}}
	for _, m := range control {
		if err := j.b.Add([]byte("control."+m.name), pcpwire.NewPMID(domain, 0, m.item)); err != nil {
			panic(err) // our own names
		}
	}
	tops = make([][]string, len(files))
	for i, f := range files {
		tops[i] = j.add(i, clusters.at(f.cluster), pcpwire.NewPMID(domain, f.cluster, 0))
	}
	return j.b.Build(), tops
}

// add enters the names of file i.
func (j *joiner) add(i int, c *cluster, base pcpwire.PMID) (tops []string) {
	f := j.files[i]
	k := c.index(f)
	var name []byte
	last := ""
	for m := range f.metrics() {
		if c.isExcluded(k, m) {
			continue
		}
		it := f.cat.Metrics[m].Item
		if x := c.item(it); x.shared() {
			if p := c.shared[x.metric].parts[0]; p.file != k { // whose file was before
				if err := c.excludedWhy(p); err != nil {
					c.exclude(k, m, err)
				}
				continue
			}
		}
		name = f.name(name[:0], m)
		if err := j.b.Add(name, base|pcpwire.PMID(it)); err != nil {
			c.exclude(k, m, j.clash(err))
			continue
		}
		j.added = append(j.added, part{i, m})
		if first, _, _ := bytes.Cut(name, []byte{'.'}); string(first) != last {
			last = string(first)
			if !j.seen[last] {
				j.seen[last] = true
				tops = append(tops, last)
			}
		}
	}
	return tops
}

// excludedWhy is why a metric is excluded, nil if it is not.
func (c *cluster) excludedWhy(p part) error {
	if c.excluded == nil {
		return nil
	}
	return c.excluded[p.file][p.metric]
}

// clashError says whose name was in the way.
type clashError struct {
	*pmda.NameError
	owner string
}

func (e *clashError) Error() string { return fmt.Sprintf("%v of %q", e.NameError, e.owner) }

// clash finds whose name was in the way.
func (j *joiner) clash(err error) error {
	ne, ok := errors.AsType[*pmda.NameError](err)
	if !ok {
		return err
	}
	if j.owners == nil {
		j.owners = map[string]int{}
	}
	for _, p := range j.added[j.known:] {
		name := string(j.files[p.file].name(nil, p.metric))
		for i := range name {
			if name[i] == '.' {
				if _, known := j.owners[name[:i]]; !known {
					j.owners[name[:i]] = p.file
				}
			}
		}
		j.owners[name] = p.file
	}
	j.known = len(j.added)
	owner, ok := j.owners[ne.Clash]
	if !ok {
		return err
	}
	return &clashError{ne, j.files[owner].f.Name}
}

// tree has the names of a file of its own component, but for what its cluster
// excludes.
func (c *cluster) tree(f *file) *pmda.Tree {
	if c.trees != nil {
		if t := c.trees[c.index(f)]; t != nil {
			return t
		}
	}
	return f.tree
}

// prune makes the trees of files from which something is excluded.
func (c *cluster) prune() {
	for k := range c.excluded {
		f := c.files[k]
		if len(c.excluded[k]) == 0 || !f.plain {
			continue
		}
		var b pmda.TreeBuilder
		for m := range f.metrics() {
			if !c.isExcluded(k, m) {
				_ = b.Add(f.cat.Text(f.cat.Metrics[m].Name), pcpwire.PMID(f.cat.Metrics[m].Item)) // it has been added before
			}
		}
		if c.trees == nil {
			c.trees = make([]*pmda.Tree, len(c.files))
		}
		c.trees[k] = b.Build()
	}
}
