package pmda

import "pmdammv/pkg/pcpwire"

// Base is what a Session can embed for what it does not have: changes,
// instance domains, texts, labels and metrics that can be set.
type Base struct{}

// Begin does nothing.
func (Base) Begin() {}

// Changes tells of none, ever.
func (Base) Changes() Changes { return Changes{} }

// End does nothing.
func (Base) End() {}

// After does nothing.
func (Base) After() {}

// Close does nothing.
func (Base) Close() {}

// Instances knows no instance domain.
func (Base) Instances(pcpwire.InDom) (Instances, error) { return nil, pcpwire.ErrInDom }

// Text knows no text.
func (Base) Text(uint32, pcpwire.TextKind) ([]byte, error) { return nil, pcpwire.ErrText }

// Labels has no labels.
func (Base) Labels(dst []LabelRecord, _ pcpwire.LabelLevel, _ uint32, _ int32) []LabelRecord {
	return dst
}

// Store lets nothing be set.
func (Base) Store(*pcpwire.ValueSet) error { return pcpwire.ErrPermission }

// NameSpace is what a Session can embed to answer from a Tree of absolute
// names that never changes.
type NameSpace struct{ *Tree }

// Traverse is that of the tree, with nothing before the names.
func (n NameSpace) Traverse(b *pcpwire.NamesBuilder, name []byte) error {
	return n.Tree.Traverse(b, nil, name)
}

// Names is that of the tree, with nothing before the names.
func (n NameSpace) Names(b *pcpwire.NamesBuilder, pmid pcpwire.PMID) error {
	return n.Tree.Names(b, nil, pmid)
}
