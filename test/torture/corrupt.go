package main

import (
	"fmt"
	"os"
	"strings"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"

	"golang.org/x/sys/unix"
)

// corrupt breaks files in every way, and asks for all that they may still export together with a good file, which must
// not suffer.
func corrupt(a *actor) {
	var good *watcher
	for _, w := range a.watched {
		if w.live && (good == nil || a.rng.IntN(2) == 0) {
			good = &watcher{watched: w, last: map[uint32]uint32{}}
		}
	}
	if p := good.find(a.c); p != "" {
		a.fail(missed, good.file, "%s", p)
		return
	}
	for a.more() {
		file := fmt.Sprintf("%s%d", a.name, a.rng.IntN(4))
		a.harm(file)
		a.look(file, good)
		a.r.count("corrupted files", 1)
	}
	for i := range 4 {
		remove(a.path(fmt.Sprintf("%s%d", a.name, i)))
	}
}

// harm breaks the file.
func (a *actor) harm(file string) {
	path := a.path(file)
	st, err := os.Stat(path)
	if err != nil || a.rng.IntN(4) == 0 {
		c := a.make(file)
		a.state(file).was = c
		if a.rng.IntN(4) == 0 { // the number of a steady file
			c.cluster = a.watched[a.rng.IntN(len(a.watched))].c.cluster
		}
		image := c.image().Build()
		a.did("%s is new", file)
		if a.rng.IntN(2) == 0 {
			a.did("bad from the start: %s", a.spoil(image))
		}
		a.must(mmvimage.Write(path, image))
		return
	}
	switch a.rng.IntN(6) {
	case 5:
		a.inflate(file)
	case 0:
		n := a.rng.Int64N(st.Size() + 1)
		a.did("truncated %s to %d of %d and extended it again", file, n, st.Size())
		a.must(os.Truncate(path, n))
		if a.rng.IntN(2) == 0 {
			a.must(os.Truncate(path, st.Size()+a.rng.Int64N(1<<20)))
		}
	case 1:
		image, err := os.ReadFile(path)
		if err != nil || len(image) > 1<<20 {
			remove(path)
			return
		}
		a.did("renamed a bad copy to %s: %s", file, a.spoil(image))
		a.must(mmvimage.Write(path, image))
	case 2:
		a.overwrite(path, min(st.Size(), 64<<10), false)
	default:
		a.overwrite(path, min(st.Size(), 64<<10), true)
	}
}

// inflate makes a file claim millions of entries, which are there, but in a hole.
func (a *actor) inflate(file string) {
	c := a.make(file)
	img := c.image()
	image, at := img.Build(), img.Layout()
	i := a.rng.IntN(at.NumTOC)
	n := 1 + a.rng.Uint32N(20_000_000)
	mmvimage.PutU32(image, at.TOC(i)+mmvimage.TOCCount, n)
	size := at.Size + uint64(n)*mmvimage.ValueSize
	if a.rng.IntN(2) == 0 { // the smallest entries that there are
		size = at.Size + uint64(n)*24
	}
	a.did("%s claims %d entries in section %d, %d bytes", file, n, i, size)
	a.must(mmvimage.Write(a.path(file), image))
	a.must(os.Truncate(a.path(file), int64(size)))
}

// overwrite changes bytes in place: through a mapping, of which nothing tells, or not.
func (a *actor) overwrite(path string, size int64, mapped bool) {
	if size == 0 {
		remove(path)
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		a.must(err)
		return
	}
	defer f.Close() //nolint:errcheck // what is written is bad anyway
	m, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		a.must(err)
		return
	}
	if mapped {
		a.did("mapped %s: %s", path, a.spoil(m))
	} else {
		b := append([]byte(nil), m...)
		a.did("wrote to %s: %s", path, a.spoil(b))
		_, err = f.WriteAt(b, 0)
		a.must(err)
	}
	a.must(unix.Munmap(m))
}

// spoil changes some bytes, and says which.
func (a *actor) spoil(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	var out strings.Builder
	for range 1 + a.rng.IntN(8) {
		off := a.rng.IntN(len(b))
		if a.rng.IntN(3) == 0 { // where most of the sense is
			off = a.rng.IntN(min(len(b), 140))
		}
		v := byte(a.rng.Uint32())
		switch a.rng.IntN(4) {
		case 0:
			v = 0
		case 1:
			v = 0xff
		case 2:
			v = b[off] ^ 1<<a.rng.IntN(8)
		}
		b[off] = v
		fmt.Fprintf(&out, "%d=%#x ", off, v)
	}
	return out.String()
}

// look asks for everything below the file's node, and for the good file in the same request.
func (a *actor) look(file string, good *watcher) {
	pmids := append([]pcpwire.PMID(nil), good.pmids...)
	names := a.c.traverse("mmv." + file)
	for _, name := range names[:min(len(names), 50)] {
		if pmid, _ := a.c.pmid(name); pmid != 0 {
			pmids = append(pmids, pmid)
			a.c.ask(&pcpwire.TextReq{Ident: uint32(pmid), Kind: pcpwire.TextPMID | pcpwire.TextHelp})
			a.c.ask(&pcpwire.LabelReq{Ident: uint32(pmid), Level: pcpwire.LabelItem})
			if d, ok := a.c.ask(&pcpwire.DescReq{PMID: pmid}).(*pcpwire.Desc); ok && d.InDom != pcpwire.InDomNull {
				indom := d.InDom
				a.c.ask(&pcpwire.InstanceReq{InDom: indom, Inst: pcpwire.InstNull})
				a.c.ask(&pcpwire.LabelReq{Ident: uint32(indom), Level: pcpwire.LabelInstances})
			}
		}
	}
	if a.rng.IntN(2) == 0 {
		a.rng.Shuffle(len(pmids)-len(good.pmids), func(i, j int) {
			i, j = i+len(good.pmids), j+len(good.pmids)
			pmids[i], pmids[j] = pmids[j], pmids[i]
		})
	}
	if sets := a.c.fetch(pmids); sets != nil {
		if p := good.check(sets[:len(good.pmids)]); p != "" {
			a.fail(wrong, good.file, "beside %s: %s", file, p)
		}
	}
}
