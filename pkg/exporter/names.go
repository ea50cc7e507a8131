package exporter

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

// nameSpace is the PMNS of a Table. What lies below a file's own component is
// that file's tree; all other names are in one tree, joined.
type nameSpace struct {
	root   []byte // "mmv"
	domain uint32
	tops   []top      // first components in order of insertion; siblings are shown in the reverse
	plain  []top      // those with a tree of their own, by name
	joined *pmda.Tree // names below the root
	from   []*file    // whose names are in joined, besides the control metrics
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
	for i := len(n.tops) - 1; i >= 0; i-- {
		c := []byte(n.tops[i].name)
		switch {
		case !status:
			b.Add(nil, c)
		case n.tops[i].tree == nil && n.leaf(c):
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
	for i := len(n.tops) - 1; i >= 0; i-- {
		c := n.tops[i]
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

// joins finds the files whose names must be joined: those without a component
// of their own, or with one that another file has as well.
func joins(files []*file, sanitize bool) []*file {
	shared := map[string]bool{"control": true}
	for _, f := range files {
		if !f.plain {
			for _, t := range f.tops {
				shared[t] = true
			}
		}
	}
	if sanitize { // two names may have become one
		seen := map[string]bool{}
		for _, f := range files {
			if f.plain && len(f.tops) > 0 {
				shared[f.tops[0]] = shared[f.tops[0]] || seen[f.tops[0]]
				seen[f.tops[0]] = true
			}
		}
	}
	var out []*file
	for _, f := range files {
		if !f.plain || len(f.tops) > 0 && shared[f.tops[0]] {
			out = append(out, f)
		}
	}
	return out
}

// join makes the joined tree: the control metrics, then the files in load
// order. A metric whose name is taken is excluded from its cluster.
func join(control []controlMetric, domain uint32, files []*file, clusters *[maxCluster + 1]*cluster) *pmda.Tree {
	var b pmda.TreeBuilder
	for _, m := range control {
		if err := b.Add([]byte("control."+m.name), pcpwire.NewPMID(domain, 0, m.item)); err != nil {
			panic(err) // our own names
		}
	}
	var name []byte
	for i, f := range files {
		c := clusters[f.cluster]
		k := slices.Index(c.files, f)
		for _, m := range f.metrics {
			if c.isExcluded(k, m) {
				continue
			}
			it := f.cat.Metrics[m].Item
			if x := c.items[it]; x.shared() {
				if p := c.shared[x.metric].parts[0]; p.file != k {
					if c.isExcluded(p.file, p.metric) {
						c.exclude(k, m, c.excluded[p.file][p.metric])
					}
					continue
				}
			}
			name = f.name(name[:0], m)
			if err := b.Add(name, pcpwire.NewPMID(domain, f.cluster, it)); err != nil {
				c.exclude(k, m, clashError(err, files[:i+1]))
			}
		}
	}
	return b.Build()
}

// clashError says whose name was in the way.
func clashError(err error, files []*file) error {
	var ne *pmda.NameError
	if !errors.As(err, &ne) {
		return err
	}
	for _, f := range files {
		for _, m := range f.metrics {
			n := string(f.name(nil, m))
			if n == ne.Clash || errors.Is(err, pmda.ErrNameNonLeaf) && strings.HasPrefix(n, ne.Clash+".") {
				return fmt.Errorf("%w of %q", err, f.f.Name)
			}
		}
	}
	return err
}

// tree has the names of a file of its own component, but for what its cluster
// excludes.
func (c *cluster) tree(f *file) *pmda.Tree {
	if t := c.trees[f]; t != nil {
		return t
	}
	return f.source.tree
}

// prune makes the trees of files from which something is excluded.
func (c *cluster) prune() {
	for k := range c.excluded {
		f := c.files[k]
		if len(c.excluded[k]) == 0 || !f.plain {
			continue
		}
		var b pmda.TreeBuilder
		for _, m := range f.metrics {
			if !c.isExcluded(k, m) {
				_ = b.Add(f.cat.Text(f.cat.Metrics[m].Name), pcpwire.PMID(f.cat.Metrics[m].Item)) // it has been added before
			}
		}
		if c.trees == nil {
			c.trees = map[*file]*pmda.Tree{}
		}
		c.trees[f] = b.Build()
	}
}
