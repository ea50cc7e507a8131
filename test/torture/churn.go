package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"pmdammv/test/mmvimage"

	"golang.org/x/sys/unix"
)

// churn does everything that can be done to a file, one thing after the other to a few files, and asks after each.
func churn(a *actor) {
	for n := 0; a.more(); n++ {
		a.step(fmt.Sprintf("%s%d", a.name, a.rng.IntN(6)))
		a.r.count("changes of files", 1)
	}
	for file := range a.files {
		_ = os.Remove(a.path(file))
		a.did("removed %s", file)
		a.expectGone(file)
	}
}

// step does one thing to a file.
func (a *actor) step(file string) {
	s := a.state(file)
	if s.c == nil {
		switch a.rng.IntN(8) {
		case 0:
			a.strange(file)
		case 1:
			a.symlink(file)
		case 2, 3, 4:
			a.publish(file, a.make(file))
		default:
			a.rewrite(file, a.make(file))
		}
		return
	}
	switch a.rng.IntN(12) {
	case 0:
		a.publish(file, a.make(file))
	case 1:
		a.publish(file, a.twin(s.c))
	case 2:
		a.rewrite(file, a.make(file))
	case 3:
		a.rewrite(file, s.c.shuffled(a.rng, a.newMark()))
	case 4:
		a.rewrite(file, a.twin(s.c))
	case 5:
		a.did("removed %s", file)
		a.must(os.Remove(a.path(file)))
		a.expectGone(file)
	case 6, 7:
		a.again(file)
	case 8:
		a.truncate(file)
	case 9:
		a.move(file)
	case 10:
		a.link(file)
	default:
		a.touch(file)
	}
}

// twin is the same but for the values.
func (a *actor) twin(c *contents) *contents {
	n := *c
	n.mark = a.newMark()
	return &n
}

// publish puts a whole file in place at once.
func (a *actor) publish(file string, c *contents) {
	a.did("renamed contents %d (generation %d) to %s", c.mark, c.gen, file)
	a.must(mmvimage.Write(a.path(file), c.image().Build()))
	a.expect(file, c)
}

// rewrite writes a file in place.
func (a *actor) rewrite(file string, c *contents) {
	w := rewriting{a.rng.IntN(2) == 0, a.rng.IntN(2) == 0, a.rng.IntN(2) == 0}
	was := a.state(file).was
	if was != nil && was.gen == c.gen && was.mark != c.mark {
		if a.blind {
			c.gen++ // nothing would tell
		} else if w.mapped && !w.truncate {
			w.mapped = false
		}
	}
	a.did("wrote contents %d (generation %d) to %s %v", c.mark, c.gen, file, w)
	image := c.image().Build()
	f, err := w.begin(a.path(file), image)
	if err != nil {
		a.must(err)
		return
	}
	defer f.close()
	if a.rng.IntN(2) == 0 {
		a.expectNothing(file)
		a.did("asked, then completed it")
	}
	a.must(f.complete())
	a.expect(file, c)
}

// again removes a file and creates one of the same name at once, right after a request.
func (a *actor) again(file string) {
	s := a.state(file)
	c := a.make(file)
	if a.rng.IntN(2) == 0 {
		c = a.twin(s.c)
	}
	image := c.image().Build()
	a.match(file, s.c, s.known)
	a.did("removed %s and wrote contents %d (generation %d)", file, c.mark, c.gen)
	a.must(os.Remove(a.path(file)))
	a.must(os.WriteFile(a.path(file), image, 0o644)) //nolint:gosec // to be read by others
	s.c, s.known = nil, 0                            // the name was free in between
	a.expect(file, c)
}

// truncate makes a file shorter than its values.
func (a *actor) truncate(file string) {
	s := a.state(file)
	at := s.c.image().Layout()
	end := at.Values + mmvimage.ValueSize*uint64(at.NumValues)
	size := a.rng.Uint64N(end)
	switch a.rng.IntN(3) {
	case 0:
		size = 0
	case 1: // in the last page, if there is nothing behind the values
		size = end - 1 - a.rng.Uint64N(min(end-mmvimage.HeaderSize, mmvimage.ValueSize*uint64(at.NumValues)))
	}
	a.did("truncated %s to %d of %d", file, size, at.Size)
	a.must(os.Truncate(a.path(file), int64(size)))
	if a.blind && size > 0 { // what is still there of the last page can be read without a fault
		a.waitNothing(file)
		return
	}
	a.expectNothing(file)
}

// move renames a file to another name, where there may be one.
func (a *actor) move(file string) {
	s := a.state(file)
	to := fmt.Sprintf("%s%d", a.name, a.rng.IntN(6))
	if to == file {
		return
	}
	t := a.state(to)
	a.did("renamed %s to %s", file, to)
	a.must(os.Rename(a.path(file), a.path(to)))
	c := s.c
	s.c, t.c = nil, nil
	a.expect(to, c)
	// The other may have taken the number as well.
	if name := c.names(file)[0]; c.flags&mmvimage.NoPrefix == 0 {
		if pmid, _ := a.c.pmid(name); pmid != 0 {
			a.fail(wrong, file, "%s is still %v", name, pmid)
		}
	}
	s.was, s.known = nil, 0 // its next contents have another tag
}

// link gives a file a second name, and then takes one of the two.
func (a *actor) link(file string) {
	s := a.state(file)
	if a.blind {
		return
	}
	other := file + "l"
	o := a.state(other)
	c := s.c
	a.did("linked %s to %s", file, other)
	a.must(os.Link(a.path(file), a.path(other)))
	a.expect(file, c)
	if c.flags&mmvimage.NoPrefix == 0 { // else both have the same names
		a.expect(other, c)
	}
	if a.rng.IntN(2) == 0 {
		a.did("removed %s", file)
		a.must(os.Remove(a.path(file)))
		if c.flags&mmvimage.NoPrefix == 0 {
			a.expectGone(file)
		}
		s.c, s.known = nil, 0
		a.expect(other, c)
		a.did("renamed %s to %s", other, file)
		a.must(os.Rename(a.path(other), a.path(file)))
	} else {
		a.did("removed %s", other)
		a.must(os.Remove(a.path(other)))
	}
	a.expect(file, c)
	*o = state{}
}

// touch does to a file what changes nothing in it.
func (a *actor) touch(file string) {
	s := a.state(file)
	path := a.path(file)
	switch a.rng.IntN(4) {
	case 0:
		a.did("touched %s", file)
		a.must(os.Chtimes(path, time.Time{}, time.Now()))
	case 1:
		a.did("extended %s by a hole", file)
		a.must(os.Truncate(path, 1<<20+a.rng.Int64N(100<<20)))
	case 2:
		a.did("opened and closed %s", file)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		a.must(err)
		a.must(f.Close())
	case 3:
		if a.blind {
			return
		}
		a.did("changed the mode of %s to 0 and back", file)
		a.must(os.Chmod(path, 0))
		_, _ = a.c.pmid("mmv." + file)
		a.must(os.Chmod(path, 0o644)) //nolint:gosec // to be read by others
		s.c = nil                     // a user who may not read it has seen it go
	}
	a.expect(file, a.orKept(s))
}

// orKept is what a file still holds.
func (a *actor) orKept(s *state) *contents {
	if s.c != nil {
		return s.c
	}
	return s.was
}

// strange puts something there that is not a file.
func (a *actor) strange(file string) {
	path := a.path(file)
	_ = os.Remove(path)
	switch a.rng.IntN(3) {
	case 0:
		a.must(os.Mkdir(path, 0o755)) //nolint:gosec // to be read by others
	case 1:
		a.must(unix.Mkfifo(path, 0o644))
	case 2:
		a.must(os.Symlink("/dev/zero", path))
	}
	a.did("%s is no file", file)
	a.expectGone(file)
	a.must(os.Remove(path))
	a.expectGone(file)
}

// symlink has a link to a file elsewhere, which changes there.
func (a *actor) symlink(file string) {
	path, target := a.path(file), filepath.Join(a.dir, "elsewhere", file)
	_ = os.Remove(path)
	a.expectGone(file)
	c := a.make(file)
	a.must(mmvimage.Write(target, c.image().Build()))
	a.must(os.Symlink(target, path))
	a.did("%s leads elsewhere to contents %d", file, c.mark)
	a.expect(file, c)
	if !a.blind {
		c = a.make(file)
		a.did("where %s leads, contents %d are written", file, c.mark)
		a.must(os.WriteFile(target, c.image().Build(), 0o644)) //nolint:gosec // to be read by others
		a.expect(file, c)
	}
	c = a.make(file)
	a.did("where %s leads, it is replaced by contents %d", file, c.mark)
	a.must(mmvimage.Write(target, c.image().Build()))
	a.expect(file, c)
	a.did("where %s leads, nothing is any more", file)
	a.must(os.Remove(target))
	a.expectGone(file)
	a.must(os.Remove(path))
	a.expectGone(file)
}
