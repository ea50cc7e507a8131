package reader

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// consider looks at the file of that name, which may have changed in any way.
func (d *Dir) consider(name string) {
	if hidden(name) {
		return
	}
	if e := d.entries[name]; e != nil {
		e.looked = d.looks.Load()
	}
	path := d.path + "/" + name
	fd, st, link, err := openPath(path)
	if err == nil {
		defer unix.Close(fd) //nolint:errcheck // only looked at
		d.load(d.find(name), fd, &st, link, path)
		return
	}
	e := d.entries[name]
	switch {
	case shortage(err):
		d.busy(d.find(name), fmt.Errorf("open: %w", err))
	case link: // it may come to lead to something
		d.skip(d.find(name), true)
	case errors.Is(err, unix.ENOENT) && e != nil:
		d.remove(e)
	case errors.Is(err, unix.ENOENT):
	default:
		e = d.find(name)
		d.reject(e, fileID{}, fmt.Errorf("open: %w", err))
		d.setPoll(e, !errors.Is(err, unix.EACCES)) // of a new mode the directory tells
	}
}

// load looks at the file behind the O_PATH descriptor and gives e the state
// that this deserves. Loaded and unchanged is left as it is.
func (d *Dir) load(e *entry, pathFD int, st *status, link bool, path string) {
	e.setStamp(st)
	if e.file != nil && !e.file.Held {
		d.stirred.Store(d.looks.Load())
	}
	if st.kind() != unix.S_IFREG {
		d.skip(e, link)
		return
	}
	d.watchLinks(e, st, link, pathFD)
	d.setOverMax(e, false)
	c, raw, fd, err := d.open(e, pathFD, path, link, st)
	if fd >= 0 {
		defer unix.Close(fd) //nolint:errcheck // only read
	}
	id := fileID{e.stamp.dev, e.stamp.ino, e.stamp.size}
	if e.id.dev != id.dev || e.id.ino != id.ino {
		d.setWritten(e, false)
	}
	old := e.file
	switch {
	case err == nil && old != nil && !old.Held && e.id.dev == id.dev && e.id.ino == id.ino && old.same(c):
		return // as it was: live values only
	case err == nil && e.state == Dead && e.id == id && e.dead == c.Header:
		d.unload(e)
		d.watchHead(e, fd, st, raw)
		return // its writer is still gone, whoever has its pid now
	}
	if old != nil && !old.Held {
		d.touches.Add(1)
		d.changed = true
	}
	switch {
	case err == nil:
		d.finish(e, fd, id, c)
	case shortage(err):
		d.busy(e, err)
	case Unfinished(err):
		d.pend(e, id, native.Uint64(raw[offGeneration1:]), err)
	default:
		d.reject(e, id, err)
		if fd < 0 && !errors.Is(err, unix.EACCES) && st.size > 0 {
			d.setPoll(e, true)
		}
	}
	if e.state != Loaded && fd >= 0 {
		d.watchHead(e, fd, st, raw)
	}
}

// watchLinks makes sure that something tells when a file changes to which the
// directory's name is not the only way. Where a link leads may change on the
// way, too.
func (d *Dir) watchLinks(e *entry, st *status, link bool, pathFD int) {
	if !link && st.links == 1 {
		d.in.unwatch(e)
		d.setPoll(e, false)
		return
	}
	watched := d.in.watchFile(e, pathFD)
	d.setPoll(e, link || !watched)
	if !watched || st.links == 1 {
		return
	}
	for _, o := range d.order { // one that had no other name when it was looked at
		if o.wd < 0 && o.id.dev == st.dev && o.id.ino == st.ino {
			d.in.share(o, e.wd)
		}
	}
}

// open opens, reads and parses the file; fd is -1 where it could not be, or
// need not be, opened. raw is its header, zero where it has none.
func (d *Dir) open(e *entry, pathFD int, path string, link bool, st *status) (c *Catalog, raw [HeaderSize]byte, fd int, err error) {
	if st.size == 0 { // files of /proc, too, that a link may lead to
		p := parser{c: &Catalog{}}
		return nil, raw, -1, p.header()
	}
	if fd, err = openFile(pathFD, path, link, e.stamp); err != nil {
		return nil, raw, -1, fmt.Errorf("open: %w", err)
	}
	// Nothing was written to the file while it was read if its stamp is then the
	// same, and SEEK_HOLE after the first of the two has waited for a write(2)
	// in progress. What is written all the time may be values, by stores too: then
	// the rest is the same twice. Else what was found may be of no state that the
	// file was ever in, and its generation does not tell that if it is always the
	// same.
	var last *Catalog
	for try := 1; ; try++ {
		_, _ = unix.Seek(fd, 0, unix.SEEK_HOLE)
		c, raw, err = d.read(fd, st)
		now, ferr := fstat(fd)
		switch {
		case ferr != nil || now.stamp == e.stamp:
			return c, raw, fd, err
		case err == nil && last != nil && last.Equal(c):
			d.setPoll(e, true) // perhaps nothing tells when it is written to
			return c, raw, fd, nil
		case try == 3:
			d.setPoll(e, true)
			if !shortage(err) {
				err = inFlux("written to while it was read")
			}
			return c, raw, fd, err
		}
		last = c // nil with an error
		*st = now
		e.setStamp(st)
	}
}

func (e *entry) setStamp(st *status) {
	e.stamp, e.young = st.stamp, st.young()
}

// read reads and parses the file. raw is its header, zero where it has none.
func (d *Dir) read(fd int, st *status) (c *Catalog, raw [HeaderSize]byte, err error) {
	m, err := d.img.open(fd, st.size)
	if err != nil {
		return nil, raw, err
	}
	p := &parser{image: m, c: &Catalog{}}
	n := min(HeaderSize, p.size)
	copy(raw[:], p.at(atEntries, 0, n, 0)[:n])
	if err := cmp.Or(p.err, p.header()); err != nil {
		return nil, raw, err
	}
	if st.size > d.opts.MaxFileSize {
		return nil, raw, fmt.Errorf("%w: %d bytes, at most %d are taken", ErrTooBig, st.size, d.opts.MaxFileSize)
	}
	p.outline = d.outline && d.loaded < maxOutlines
	c, err = p.parse(min(d.img.filled(st.blocks), p.size), &d.img.parsing)
	if shortage(err) {
		return nil, raw, err
	}
	var after [HeaderSize]byte
	if n, err := preadFull(fd, after[:], 0); err != nil || n < HeaderSize || after != raw {
		return nil, raw, inFlux("changed while it was read")
	}
	return c, raw, err
}

// finish makes e a loaded file, if its writer lives and there is room.
func (d *Dir) finish(e *entry, fd int, id fileID, c *Catalog) {
	host, err := d.writer(e, id, &c.Header)
	if err != nil {
		e.id = id
		d.bury(e, c.Header, err)
		return
	}
	if (e.file == nil || e.file.Held) && d.loaded >= d.opts.MaxFiles {
		d.setOverMax(e, true)
		d.reject(e, id, fmt.Errorf("%w: at most %d are mapped", ErrTooMany, d.opts.MaxFiles))
		return
	}
	f := &File{Name: e.name, Catalog: c, id: id, dir: d, pid: host}
	if err := d.mapLive(f, fd); err != nil {
		d.busy(e, err)
		return
	}
	d.unload(e)
	e.id = id
	e.file = f
	d.loaded++
	d.changed = true
	tag := native.Uint64(append([]byte(Tag), native.AppendUint32(nil, c.Header.Version)...))
	d.addHead(e, f.head, tag, c.Header.Generation1, c.Header.Generation2)
	d.set(e, Loaded, nil)
}

// mapFile is mapFile while there is room for the mappings of the heap, too.
func (d *Dir) mapFile(fd int, start, size uint64) (mapping, error) {
	if len(d.heads)+int(d.mapped.Load()) >= d.maxMaps {
		return mapping{}, fmt.Errorf("map: %w", unix.ENOMEM)
	}
	return mapFile(fd, start, size)
}

// mapLive maps the header and the live part of a file: in one where that is
// hardly more, else in two, since a page that is looked at brings its
// neighbours along.
func (d *Dir) mapLive(f *File, fd int) (err error) {
	const apart = 64 << 10
	start, end := f.Catalog.live[0], f.Catalog.live[1]
	if start < apart {
		start = 0
	}
	start -= start % uint64(os.Getpagesize())
	if f.m, err = d.mapFile(fd, start, max(end, HeaderSize)); err != nil {
		return err
	}
	f.head = f.m
	if start > 0 {
		if f.head, err = d.mapFile(fd, 0, HeaderSize); err != nil {
			f.m.unmap()
			return err
		}
	}
	d.mapped.Add(int32(f.mappings()))
	return nil
}

// writer returns the pid here of the file's writer, 0 if that does not matter,
// or that it is not alive.
func (d *Dir) writer(e *entry, id fileID, h *Header) (host int32, err error) {
	pid := int32(0)
	if h.Flags&FlagProcess != 0 && d.opts.Process != ProcessOff {
		pid = h.Process
	}
	if e.pid != pid {
		d.unwatchWriter(e)
	}
	if pid == 0 {
		return 0, nil
	}
	p := d.ps.watch(e, pid, id)
	if p == nil {
		return 0, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	e.pid = pid
	if d.opts.Process == ProcessStrict {
		if mapped, known := mapsFile(p.host, id, e.name); known && !mapped {
			d.unwatchWriter(e)
			return 0, fmt.Errorf("process %d does not map the file: %w", pid, ErrGone)
		}
	}
	return p.host, nil
}

// watchHead maps the header of a file that is not loaded, so that the writer's
// last store is seen. Files too short for one grow with an event.
func (d *Dir) watchHead(e *entry, fd int, st *status, raw [HeaderSize]byte) {
	if st.size < HeaderSize || e.head >= 0 {
		return
	}
	m, err := d.mapFile(fd, 0, HeaderSize)
	if err != nil {
		d.setPoll(e, true)
		return
	}
	e.hm = m
	d.addHead(e, m, native.Uint64(raw[:]), native.Uint64(raw[offGeneration1:]), native.Uint64(raw[offGeneration2:]))
}
