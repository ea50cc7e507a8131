package pmda

import "pmdammv/pkg/pcpwire"

// A Source is what an agent is about: it opens one [Session] per connection.
// Open may be slow; pmcd has been greeted before it is called. It is called
// from as many goroutines as there are connections.
type Source interface {
	Open() Session
}

// A Session answers the requests of one connection. It is used by one
// goroutine at a time.
//
// Begin is called before each request, End when the reply is encoded and not
// yet written, After when it has been; every other method but Close is called
// between the first two, and answers from one state of things; Fetch and Instances
// may move on to a newer one. All three are also called once right after Open, before
// any request. What the others return (names, texts, labels) need not live
// longer than until End, and must not change until then. What they are passed (names,
// pmids, profiles, value sets with their strings) is valid until they return, must
// not be changed, and is to be copied if it is to be kept.
//
// An error that is, or wraps, a [pcpwire.Status] goes to the client as that
// code; any other one as PM_ERR_GENERIC. PM_ERR_IPC, PM_ERR_TIMEOUT, -EPIPE,
// PM_ERR_PMDAREADY and PM_ERR_PMDANOTREADY mean something else to pmcd (some
// make it drop the agent) and are not for a Session to use: they are replaced
// by PM_ERR_GENERIC.
type Session interface {
	// Begin looks for changes. From here on the session answers from one immutable
	// state.
	Begin()
	// Changes tells of that state. For a fetch it is asked after Fetch.
	Changes() Changes
	End()
	// After is for what the reply need not wait for. It is not called when the
	// reply cannot be written: then Close is.
	After()
	// Close is called once, when the connection is over.
	Close()

	// PMID returns the identifier of a leaf; PM_ERR_NAME for other names.
	PMID(name []byte) (pcpwire.PMID, error)
	// Children adds the last components of the children of a node, each with
	// its status if asked for; none for a leaf, PM_ERR_NAME for an unknown
	// name. Like the next two it finds b begun.
	Children(b *pcpwire.NamesBuilder, name []byte, status bool) error
	// Traverse adds the absolute names of all leaves at or below a node;
	// PM_ERR_NAME for an unknown name.
	Traverse(b *pcpwire.NamesBuilder, name []byte) error
	// Names adds the absolute names of a metric; PM_ERR_PMID if there is none.
	Names(b *pcpwire.NamesBuilder, pmid pcpwire.PMID) error

	// Desc describes a metric; PM_ERR_PMID for an unknown one.
	Desc(pmid pcpwire.PMID) (pcpwire.Desc, error)
	// Instances returns an instance domain; PM_ERR_INDOM for an unknown one.
	Instances(indom pcpwire.InDom) (Instances, error)
	// Text returns the help text of a metric (kind has TextPMID) or of an
	// instance domain (TextInDom), one line or all of it (TextOneLine,
	// TextHelp): exactly one of either pair. PM_ERR_TEXT if there is none.
	Text(ident uint32, kind pcpwire.TextKind) ([]byte, error)
	// Labels appends the label records of something, to be merged in that
	// order. level is one bit; ident is the domain number, an InDom, a PMID
	// (for a cluster with item 0) or, for the context, 0xffffffff; inst is an
	// instance of the InDom for LabelInstances, else InstNull.
	Labels(dst []LabelRecord, level pcpwire.LabelLevel, ident uint32, inst int32) []LabelRecord

	// Fetch adds the value sets of pmids to b, in that order, one for each.
	// It begins b itself, with no flags; profile may be nil, for all
	// instances. An error is one for all of pmids: a metric that has no value
	// has its status in its value set.
	Fetch(pmids []pcpwire.PMID, profile *pcpwire.Profile, b *pcpwire.ResultBuilder) error
	// Store sets the values of one metric. 32-bit integers come in situ and
	// without a type. PM_ERR_PERMISSION if that metric can not be set. A request
	// may set several: the first error ends it, and what was set before stays.
	Store(set *pcpwire.ValueSet) error
}

// Changes tells the state of a Session by tokens: two equal tokens mean the
// same set. The fetch reply that follows a change of Names (of any name, PMID
// or descriptor) or of Labels (of any label) announces it to pmcd's clients,
// once on each connection.
type Changes struct{ Names, Labels uint64 }

// Instances is an instance domain as a table, in the order in which its
// instances are to be shown.
type Instances interface {
	Len() int
	At(i int) (inst int32, name []byte)
}

// An InstanceFinder is an [Instances] that finds an instance by its number
// faster than by looking at all of them.
type InstanceFinder interface {
	Instances
	Find(inst int32) (name []byte, ok bool)
}
