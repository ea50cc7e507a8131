package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pmdammv/pkg/pcpwire"
)

// actor does one kind of thing to files of its own and asks an agent about them.
type actor struct {
	*stage
	ctx   context.Context
	name  string
	rng   *rand.Rand
	c     *client
	blind bool // the agent has no file events

	files map[string]*state // by name
	trail []string          // what it did last
}

// state is what a file should be at the moment.
type state struct {
	c     *contents // nil: not there, or not to be seen
	was   *contents // the last ones
	known uint32    // its cluster, 0: not known
}

// more tells whether to go on.
func (a *actor) more() bool { return a.ctx.Err() == nil && a.c.err == nil }

// did notes what was done to a file.
func (a *actor) did(format string, args ...any) {
	if len(a.trail) == 10 {
		a.trail = slices.Delete(a.trail, 0, 1)
	}
	a.trail = append(a.trail, fmt.Sprintf(format, args...))
}

// fail tells of a failure with what is known of the file, unless the agent is gone and the answers mean nothing.
func (a *actor) fail(kind, file, format string, args ...any) {
	if a.c.err != nil {
		return
	}
	a.r.fail(kind, "%s, %s asks %s about %s: %s\n    before: %s\n    %s", a.stage.name, a.name, a.c.a.name, file,
		fmt.Sprintf(format, args...), strings.Join(a.trail, "; "), describe(filepath.Join(a.mmv, file)))
}

// describe is what a file looks like now.
func describe(path string) string {
	st, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	out := fmt.Sprintf("%v, %d bytes", st.Mode(), st.Size())
	if b, err := os.ReadFile(path); err == nil {
		out += fmt.Sprintf(", begins with % x", b[:min(len(b), 40)])
	}
	return out
}

// must is for what only the machine can make fail.
func (a *actor) must(err error) {
	if err != nil && a.ctx.Err() == nil {
		a.fatal(fmt.Errorf("%s: %w", a.name, err))
	}
}

func (a *actor) path(file string) string { return filepath.Join(a.mmv, file) }

// state is that of a file of this actor.
func (a *actor) state(file string) *state {
	if a.files == nil {
		a.files = map[string]*state{}
	}
	if a.files[file] == nil {
		a.files[file] = &state{}
	}
	return a.files[file]
}

// make makes up contents for the file; what it had before has the same tag.
func (a *actor) make(file string) *contents {
	s := a.state(file)
	tag := uint32(0)
	if s.was != nil {
		tag = s.was.tag
	} else {
		tag = a.newTag()
	}
	return random(a.rng, tag, a.newMark())
}

// expect asks about a file that is complete.
func (a *actor) expect(file string, c *contents) {
	s := a.state(file)
	known := s.known
	if s.c == nil || s.c.cluster != 0 || c.cluster != 0 {
		known = 0 // may have become another's, or be shared with others that it no longer goes with
	}
	s.c, s.was = c, c
	names := c.names(file)
	switch k := a.rng.IntN(4); {
	case k == 0 && known != 0:
		a.match(file, c, known)
	case k <= 1:
		if got := a.c.traverse(c.node(file)); !same(got, names) {
			a.fail(missed, file, "names are %q, want %q", got, names)
		}
	case k == 2:
		if last := strings.TrimPrefix(c.node(file), "mmv."); !slices.Contains(a.c.children("mmv"), last) {
			a.fail(missed, file, "mmv has no child %s", last)
		}
	}
	i := a.rng.IntN(len(names))
	pmid, st := a.c.pmid(names[i])
	if pmid == 0 || pmid.Item() != c.items[i] {
		a.fail(missed, file, "%s is %v (%v)", names[i], pmid, st)
		return
	}
	if known != 0 && pmid.Cluster() != known {
		a.fail(wrong, file, "cluster was %d and is now %d", known, pmid.Cluster())
	}
	s.known = pmid.Cluster()
	a.match(file, c, s.known)
	if a.rng.IntN(8) == 0 {
		a.metadata(file, c, s.known)
	}
}

// pmids are those of the metrics of contents in that cluster.
func (c *contents) pmids(cluster uint32) []pcpwire.PMID {
	out := make([]pcpwire.PMID, 0, len(c.items))
	for _, item := range c.items {
		out = append(out, pcpwire.NewPMID(70, cluster, item))
	}
	return out
}

// match fetches all values and compares.
func (a *actor) match(file string, c *contents, cluster uint32) {
	sets := a.c.fetch(c.pmids(cluster))
	for i := range sets {
		if missing, problem := c.match(&sets[i]); problem != "" {
			kind := wrong
			if missing {
				kind = missed
			}
			a.fail(kind, file, "%s", problem)
			return
		}
	}
}

// same compares lists whatever their order.
func same(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// expectGone asks about a file that is not there any more.
func (a *actor) expectGone(file string) {
	s := a.state(file)
	if s.was == nil {
		return
	}
	a.expectNothing(file)
	names := s.was.names(file)
	if pmid, st := a.c.pmid(names[a.rng.IntN(len(names))]); pmid != 0 || st != pcpwire.ErrName {
		a.fail(wrong, file, "a name of a file that is gone is %v (%v)", pmid, st)
	}
	if got := a.c.traverse(s.was.node(file)); len(got) > 0 {
		a.fail(wrong, file, "a file that is gone has names %q", got)
	}
	s.known = 0
}

// expectNothing asks about a file that is not complete, or is gone: it has no values.
func (a *actor) expectNothing(file string) {
	s := a.state(file)
	s.c = nil
	if s.was == nil || s.known == 0 {
		return
	}
	if set := a.anything(s); set != nil {
		a.fail(wrong, file, "%v has %d values that are no longer there", set.PMID, set.NumVal)
	}
}

// anything returns a value set of the contents that a file had last, nil if there is none. Another file may have the
// number now, with other values.
func (a *actor) anything(s *state) *pcpwire.ValueSet {
	sets := a.c.fetch(s.was.pmids(s.known))
	for i := range sets {
		if sets[i].NumVal > 0 && check(s.was.tag, &sets[i], func(int32, uint32, uint32) {}) == "" {
			return &sets[i]
		}
	}
	return nil
}

// metadata asks for all else about a file.
func (a *actor) metadata(file string, c *contents, cluster uint32) {
	for _, item := range c.items {
		pmid := pcpwire.NewPMID(70, cluster, item)
		id := identity(c.tag, item, pcpwire.InstNull)
		desc, ok := a.c.ask(&pcpwire.DescReq{PMID: pmid}).(*pcpwire.Desc)
		if !ok || int32(desc.Type) != kindOf(item) || (desc.InDom == pcpwire.InDomNull) != (item < eachFrom) {
			a.fail(wrong, file, "descriptor of %v: %+v", pmid, desc)
			continue
		}
		indom := desc.InDom
		names := a.c.ask(&pcpwire.IDs{IDs: []pcpwire.PMID{pmid}})
		if got := toStrings(names); len(got) != 1 || !slices.Contains(c.names(file), got[0]) {
			a.fail(wrong, file, "names of %v: %q", pmid, got)
		}
		line, ok := a.c.ask(&pcpwire.TextReq{Ident: uint32(pmid), Kind: pcpwire.TextPMID | pcpwire.TextOneLine}).(*pcpwire.Text)
		if ok != c.texts || ok && string(line.Text) != text(id, 0) {
			a.fail(wrong, file, "text of %v: %+v", pmid, line)
		}
		labels, ok := a.c.ask(&pcpwire.LabelReq{Ident: uint32(pmid), Level: pcpwire.LabelItem}).(*pcpwire.LabelPDU)
		want := fmt.Sprintf(`{"of":"%08x"}`, id)
		if c.version == 3 && (!ok || len(labels.Sets) != 1 || string(labels.Sets[0].JSON) != want) {
			a.fail(wrong, file, "labels of %v: %+v, want %s", pmid, labels, want)
		}
		if item >= eachFrom {
			a.instances(file, c, indom)
		}
	}
}

func (a *actor) instances(file string, c *contents, indom pcpwire.InDom) {
	list, ok := a.c.ask(&pcpwire.InstanceReq{InDom: indom, Inst: pcpwire.InstNull}).(*pcpwire.Instance)
	if !ok || len(list.Entries) < len(c.insts) { // there may be another file's
		a.fail(wrong, file, "instances of %v: %+v, want %v", indom, list, c.insts)
		return
	}
	for _, e := range list.Entries {
		if string(e.Name) != fmt.Sprintf("n%d", e.Inst) {
			a.fail(wrong, file, "instance %d of %v is called %q", e.Inst, indom, e.Name)
		}
	}
}
