package pmda

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"

	"pmdammv/pkg/pcpwire"
)

// Why a name was refused; see [NameError].
var (
	// ErrNameTaken: there is a leaf of that name.
	ErrNameTaken = errors.New("name is taken")
	// ErrNameBelowLeaf: the name would be below an existing leaf.
	ErrNameBelowLeaf = errors.New("name is below a leaf")
	// ErrNameNonLeaf: there are names below that name.
	ErrNameNonLeaf = errors.New("name is a non-leaf")
	// ErrNameComponent: a component is empty, or has a character other than
	// letters, digits and underscore.
	ErrNameComponent = errors.New("bad name component")
	// ErrNameSpaceFull: the name is longer than 65535 bytes, or the tree has
	// no room left for it.
	ErrNameSpaceFull = errors.New("name does not fit")
)

// A NameError says which name a [TreeBuilder] refused and what was in the way.
type NameError struct {
	Name  string
	Clash string // the existing name, or the bad component
	Err   error  // one of the ErrName values
}

func (e *NameError) Error() string {
	return fmt.Sprintf("name %q: %v: %q", e.Name, e.Err, e.Clash)
}

func (e *NameError) Unwrap() error { return e.Err }

const (
	leastIndex  = 16 // power of two
	maxTreeName = math.MaxUint16
)

// A TreeBuilder makes a [Tree]. Its zero value is an empty tree.
type TreeBuilder struct {
	t Tree
}

// Grow makes room for that many more leaves, with so many bytes of names.
func (b *TreeBuilder) Grow(leaves, bytes int) {
	b.begin()
	t := &b.t
	t.names = slices.Grow(t.names, bytes)
	t.nodes = slices.Grow(t.nodes, leaves+leaves/16+1) // few names have a component of their own
	if n := len(t.nodes) + leaves + 1; 2*n > len(t.index) {
		b.reindex(1 << bits.Len(uint(2*n-1)))
	}
}

// Add inserts a leaf. Names are stricter than libpcp's: every component must
// be of letters, digits and underscores, since pmcd's clients cannot ask for
// anything else.
//
// The error is a *[NameError]; the tree is then as it was before.
func (b *TreeBuilder) Add(name []byte, pmid pcpwire.PMID) error {
	b.begin()
	if comp, ok := badComponent(name); ok {
		return nameError(name, comp, ErrNameComponent)
	}
	if len(name) > maxTreeName || b.full(name) {
		return nameError(name, nil, ErrNameSpaceFull)
	}
	if n, ok := b.t.find(name); ok {
		if b.t.leaf(n) {
			return nameError(name, name, ErrNameTaken)
		}
		return nameError(name, name, ErrNameNonLeaf)
	}
	parent, known := b.parent(name)
	if b.t.leaf(parent) {
		return nameError(name, b.t.fullName(parent), ErrNameBelowLeaf)
	}
	start := uint32(len(b.t.names))
	b.t.names = append(b.t.names, name...)
	for comp := known; comp < len(name); {
		end := comp
		for end < len(name) && name[end] != '.' {
			end++
		}
		parent = b.insert(parent, treeNode{name: start, end: uint16(end), comp: uint16(comp), pmid: pcpwire.PMIDNull})
		comp = end + 1
	}
	b.t.nodes[parent].pmid = pmid
	b.t.leaves++
	return nil
}

// Build returns the tree of all names added, in memory of about its size.
// The builder is empty afterwards.
func (b *TreeBuilder) Build() *Tree {
	b.begin()
	t := b.t
	t.names, t.nodes = clipped(t.names), clipped(t.nodes)
	b.t = Tree{}
	return &t
}

// clipped returns s, or a copy if much of its memory is not used.
func clipped[E any](s []E) []E {
	if cap(s)-len(s) > len(s)/8 {
		s = slices.Clone(s)
	}
	return slices.Clip(s)
}

func (b *TreeBuilder) begin() {
	if b.t.nodes == nil {
		b.t.seed = maphash.MakeSeed()
		b.t.nodes = make([]treeNode, 1)
		b.t.index = make([]uint32, leastIndex)
	}
}

// full reports whether a name might have no offset, or its nodes no number,
// in 32 bits.
func (b *TreeBuilder) full(name []byte) bool {
	used := max(len(b.t.names), len(b.t.nodes))
	return uint64(used)+uint64(len(name)) > math.MaxUint32
}

// parent returns the deepest node that name will be below, and where the
// first component that does not exist yet starts.
func (b *TreeBuilder) parent(name []byte) (node uint32, start int) {
	for i := len(name) - 1; i > 0; i-- {
		if name[i] != '.' {
			continue
		}
		if n, ok := b.t.find(name[:i]); ok {
			return n, i + 1
		}
	}
	return treeRoot, 0
}

// insert puts a node at the front of its parent's children.
func (b *TreeBuilder) insert(parent uint32, node treeNode) uint32 {
	t := &b.t
	n := uint32(len(t.nodes))
	node.next = t.nodes[parent].child
	t.nodes = append(t.nodes, node)
	t.nodes[parent].child = n
	if 2*len(t.nodes) > len(t.index) {
		b.reindex(2 * len(t.index))
	} else {
		t.index[t.slot(t.fullName(n))] = n
	}
	return n
}

// reindex makes the index anew, of that size, with all nodes.
func (b *TreeBuilder) reindex(size int) {
	t := &b.t
	t.index = make([]uint32, size)
	for n := uint32(1); int(n) < len(t.nodes); n++ {
		t.index[t.slot(t.fullName(n))] = n
	}
}

// badComponent returns the first component that may not be part of a name.
func badComponent(name []byte) (comp []byte, bad bool) {
	start := 0
	ok := true
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '.' {
			ok = ok && nameByte(name[i])
			continue
		}
		if !ok || i == start {
			return name[start:i], true
		}
		start = i + 1
	}
	return nil, false
}

// nameByte reports whether c may be part of a name of a metric or a label.
func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

func nameError(name, clash []byte, err error) error {
	return &NameError{Name: string(name), Clash: string(clash), Err: err}
}
