// Package local is a local context: an agent in this process, asked what pmcd
// would ask it. It is the code that serves pmcd, so what it says is what pmcd's
// clients see; labels of the context, which pmcd itself adds, are missing.
package local

import (
	"encoding/json"
	"errors"
	"fmt"

	"pmdammv/pkg/exporter"
	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
)

// Context is an agent and one connection to it. It is for one goroutine.
type Context struct {
	opts   exporter.Options
	exp    *exporter.Exporter
	sess   pmda.Session
	events []exporter.Event

	names  pcpwire.NamesBuilder
	result pcpwire.ResultBuilder
	reply  pcpwire.Names
	values pcpwire.Result
}

// Open starts an agent that writes nothing. Close it.
func Open(opts exporter.Options) (*Context, error) {
	c := &Context{}
	opts.ReadOnly = true
	opts.Event = func(ev exporter.Event) { c.events = append(c.events, ev) }
	exp, err := exporter.New(opts)
	if err != nil {
		return nil, err
	}
	c.opts, c.exp, c.sess = opts, exp, exp.Open()
	c.sess.After()
	return c, nil
}

// Close ends the agent.
func (c *Context) Close() {
	c.sess.Close()
	c.exp.Close()
}

// Events returns what the agent has had to say since the last call.
func (c *Context) Events() []exporter.Event {
	ev := c.events
	c.events = nil
	return ev
}

// Root is the first component of all names.
func (c *Context) Root() string { return c.opts.Prefix }

// Domain is the first part of all PMIDs.
func (c *Context) Domain() uint32 { return c.opts.Domain }

// Look looks at the directory and calls f; all that f asks is answered from the
// state of that moment, or a newer one. What the questions return stays good
// afterwards.
func (c *Context) Look(f func() error) error {
	defer c.sess.After()
	c.sess.Begin()
	defer c.sess.End()
	return f()
}

// Names returns the names of all metrics at or below a node, in pmcd's order.
func (c *Context) Names(node string) ([]string, error) {
	c.names.Begin(false)
	if err := c.sess.Traverse(&c.names, []byte(node)); err != nil {
		return nil, err
	}
	return c.list()
}

// list is what the names builder has.
func (c *Context) list() ([]string, error) {
	pdu, err := c.names.Finish()
	if err != nil {
		return nil, err
	}
	if err := c.reply.Decode(pdu[pcpwire.HeaderSize:]); err != nil {
		return nil, err
	}
	out := make([]string, len(c.reply.Names))
	for i, n := range c.reply.Names {
		out[i] = string(n)
	}
	return out, nil
}

// PMID returns the identifier of a metric.
func (c *Context) PMID(name string) (pcpwire.PMID, error) { return c.sess.PMID([]byte(name)) }

// NamesOf returns the names of a metric.
func (c *Context) NamesOf(pmid pcpwire.PMID) ([]string, error) {
	c.names.Begin(false)
	if err := c.sess.Names(&c.names, pmid); err != nil {
		return nil, err
	}
	return c.list()
}

// Desc describes a metric.
func (c *Context) Desc(pmid pcpwire.PMID) (pcpwire.Desc, error) { return c.sess.Desc(pmid) }

// Text returns a help text; kind is TextOneLine or TextHelp, with TextPMID or
// TextInDom.
func (c *Context) Text(ident uint32, kind pcpwire.TextKind) (string, error) {
	b, err := c.sess.Text(ident, kind)
	return string(b), err
}

// Instance is an instance of an indom.
type Instance struct {
	ID   int32
	Name string
}

// Instances returns the instances of an indom in its order.
func (c *Context) Instances(indom pcpwire.InDom) ([]Instance, error) {
	t, err := c.sess.Instances(indom)
	if err != nil {
		return nil, err
	}
	out := make([]Instance, t.Len())
	for i := range out {
		id, name := t.At(i)
		out[i] = Instance{id, string(name)}
	}
	return out, nil
}

// Value is the value of one instance; InstNull for a singular metric.
type Value struct {
	Inst int32
	Atom pcpwire.AtomValue
}

// Values are the values of one metric, or why there is none.
type Values struct {
	Err    error // nil: as many as there are, perhaps none
	Values []Value
}

// Fetch returns the values of metrics, in that order.
func (c *Context) Fetch(descs []pcpwire.Desc) ([]Values, error) {
	pmids := make([]pcpwire.PMID, len(descs))
	for i := range descs {
		pmids[i] = descs[i].PMID
	}
	if err := c.sess.Fetch(pmids, nil, &c.result); err != nil {
		return nil, err
	}
	pdu, err := c.result.Finish()
	if err != nil {
		return nil, err
	}
	if err := c.values.Decode(pdu[pcpwire.HeaderSize:]); err != nil {
		return nil, err
	}
	if len(c.values.Sets) != len(descs) {
		return nil, fmt.Errorf("%d value sets for %d metrics", len(c.values.Sets), len(descs))
	}
	out := make([]Values, len(descs))
	for i := range out {
		out[i] = extract(&c.values.Sets[i], descs[i].Type)
	}
	return out, nil
}

// extract copies a value set.
func extract(set *pcpwire.ValueSet, t pcpwire.Type) Values {
	if set.NumVal < 0 {
		return Values{Err: pcpwire.Status(set.NumVal)}
	}
	v := Values{Values: make([]Value, 0, len(set.Values))}
	for i := range set.Values {
		a, err := set.Values[i].Extract(set.Format, t)
		if err != nil {
			return Values{Err: err}
		}
		if a.Str != nil {
			a.Str = append([]byte{}, a.Str...)
		}
		v.Values = append(v.Values, Value{set.Values[i].Inst, a})
	}
	return v
}

// Level is what labels are of, and which one.
type Level struct {
	Level pcpwire.LabelLevel
	Ident uint32
	Inst  int32 // for LabelInstances, else InstNull
}

// Levels are those whose labels a metric has, from the widest to the narrowest,
// without the instances'.
func (c *Context) Levels(d pcpwire.Desc) []Level {
	l := []Level{{pcpwire.LabelDomain, d.PMID.Domain(), pcpwire.InstNull}}
	if d.InDom != pcpwire.InDomNull {
		l = append(l, Level{pcpwire.LabelInDom, uint32(d.InDom), pcpwire.InstNull})
	}
	cluster := pcpwire.NewPMID(d.PMID.Domain(), d.PMID.Cluster(), 0)
	return append(l, Level{pcpwire.LabelCluster, uint32(cluster), pcpwire.InstNull}, Level{pcpwire.LabelItem, uint32(d.PMID), pcpwire.InstNull})
}

// InDomLevels are those whose labels an indom has.
func (c *Context) InDomLevels(id pcpwire.InDom) []Level {
	return []Level{{pcpwire.LabelDomain, id.Domain(), pcpwire.InstNull}, {pcpwire.LabelInDom, uint32(id), pcpwire.InstNull}}
}

// Labels merges the labels of these levels; of two with one name the later
// level's counts.
func (c *Context) Labels(levels []Level) (pcpwire.LabelSet, error) {
	var records []pmda.LabelRecord
	for _, l := range levels {
		if l.Level == pcpwire.LabelDomain {
			agent, err := json.Marshal(map[string]string{"agent": c.opts.Prefix})
			if err != nil {
				return pcpwire.LabelSet{}, err
			}
			records = append(records, pmda.LabelRecord{JSON: agent})
		}
		records = c.sess.Labels(records, l.Level, l.Ident, l.Inst)
	}
	set, err := pmda.MergeLabels(pcpwire.LabelInstances, records) // at this level the text is made anew
	if errors.Is(err, pmda.ErrLabelSize) {
		return set, err
	}
	return set, nil // a label that is not one is nobody's, under pmcd too
}
