package pmda

import (
	"bytes"
	"hash/maphash"
	"slices"

	"pmdammv/pkg/pcpwire"
)

// A Tree is an immutable name space, the pmdaNameSpace of libpcp_pmda: dotted
// names whose leaves have a PMID. It is made by a [TreeBuilder] and may be
// used by any number of goroutines.
//
// Names are relative to the tree's root, which has the empty name, so that a
// tree can hang below any component of a larger name space without being
// copied: methods that give absolute names take the text to put before them
// ("sample." or "").
//
// Siblings come in reverse order of their first insertion, as libpcp has them.
type Tree struct {
	names  []byte     // full names of the leaves, end to end
	nodes  []treeNode // nodes[0] is the root
	index  []uint32   // hash table of node numbers by full name; 0: free
	seed   maphash.Seed
	leaves int
}

// A treeNode has no pointers, so that the collector need not look at it. The
// full name of an inner node is the beginning of the name of the leaf that
// made it.
type treeNode struct {
	name  uint32 // offset of the full name in names
	end   uint16 // length of the full name
	comp  uint16 // where in it the last component starts
	pmid  pcpwire.PMID
	child uint32 // first child; 0: none, so a leaf
	next  uint32 // next sibling; 0: none
}

const treeRoot = 0

// Len returns the number of leaves.
func (t *Tree) Len() int { return t.leaves }

// PMID returns the identifier of a leaf, PM_ERR_NAME for anything else
// (pmdaTreePMID).
func (t *Tree) PMID(name []byte) (pcpwire.PMID, error) {
	n, ok := t.find(name)
	if !ok || !t.leaf(n) {
		return pcpwire.PMIDNull, pcpwire.ErrName
	}
	return t.nodes[n].pmid, nil
}

// Children adds the last components of a node's children to b, each with its
// status if asked for; none for a leaf. PM_ERR_NAME if there is no such node
// (pmdaTreeChildren). The empty name is the root.
func (t *Tree) Children(b *pcpwire.NamesBuilder, name []byte, status bool) error {
	n, ok := t.find(name)
	if !ok {
		return pcpwire.ErrName
	}
	for c := t.nodes[n].child; c != 0; c = t.nodes[c].next {
		full := t.fullName(c)
		comp := full[t.nodes[c].comp:]
		switch {
		case !status:
			b.Add(nil, comp)
		case t.leaf(c):
			b.AddStatus(comp, pcpwire.Leaf)
		default:
			b.AddStatus(comp, pcpwire.NonLeaf)
		}
	}
	return nil
}

// Traverse adds prefix and the full name of every leaf at or below the node
// of that name to b, depth first. PM_ERR_NAME if there is no such node. The
// empty name is the root.
func (t *Tree) Traverse(b *pcpwire.NamesBuilder, prefix, name []byte) error {
	n, ok := t.find(name)
	if !ok {
		return pcpwire.ErrName
	}
	t.walk(n, func(leaf uint32) { b.Add(prefix, t.fullName(leaf)) })
	return nil
}

// Names adds prefix and the full name of every leaf with that identifier to
// b, in the reverse of the order of Traverse; PM_ERR_PMID if there is none
// (pmdaTreeName). It looks at every node.
func (t *Tree) Names(b *pcpwire.NamesBuilder, prefix []byte, pmid pcpwire.PMID) error {
	var found []uint32
	t.walk(treeRoot, func(leaf uint32) {
		if t.nodes[leaf].pmid == pmid {
			found = append(found, leaf)
		}
	})
	if len(found) == 0 {
		return pcpwire.ErrPMID
	}
	for _, leaf := range slices.Backward(found) {
		b.Add(prefix, t.fullName(leaf))
	}
	return nil
}

// walk calls do with the leaves at or below n, depth first.
func (t *Tree) walk(n uint32, do func(leaf uint32)) {
	if t.leaf(n) {
		do(n)
		return
	}
	for c := t.nodes[n].child; c != 0; c = t.nodes[c].next {
		t.walk(c, do)
	}
}

// leaf reports whether n has a PMID. Inner nodes are only ever made together
// with a leaf below them, so childless means leaf, but for an empty root.
func (t *Tree) leaf(n uint32) bool { return n != treeRoot && t.nodes[n].child == 0 }

func (t *Tree) fullName(n uint32) []byte {
	node := &t.nodes[n]
	start, end := int(node.name), int(node.name)+int(node.end)
	return t.names[start:end:end]
}

// find returns the node of a full name. Names are unique and leaves have
// nothing below them, so an exact match is what libpcp's walk down the tree
// finds.
func (t *Tree) find(name []byte) (uint32, bool) {
	if len(name) == 0 {
		return treeRoot, true
	}
	n := t.index[t.slot(name)]
	return n, n != 0
}

// slot returns the place of a name in the index: where it is, or the free
// place where it would go. The index always has free places.
func (t *Tree) slot(name []byte) int {
	mask := len(t.index) - 1
	i := int(maphash.Bytes(t.seed, name)) & mask
	for t.index[i] != 0 && !bytes.Equal(t.fullName(t.index[i]), name) {
		i = (i + 1) & mask
	}
	return i
}
