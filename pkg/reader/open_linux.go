package reader

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// load looks at the file behind the O_PATH descriptor and gives e the state
// that this deserves. Loaded and unchanged is left as it is.
func (d *Dir) load(e *entry, pathFD int, path string) {
	var st unix.Stat_t
	if err := unix.Fstat(pathFD, &st); err != nil {
		d.reject(e, fileID{}, fmt.Errorf("stat: %w", err))
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		d.skip(e, false)
		return
	}
	d.watchLinks(e, &st, path)
	id := fileID{uint64(st.Dev), st.Ino, st.Size, st.Mode}
	fd, err := openFile(pathFD, path, id)
	if err != nil {
		d.reject(e, id, fmt.Errorf("open: %w", err))
		if err != unix.EACCES && err != unix.EPERM { // of these two the file's status tells
			d.setPoll(e, true)
		}
		return
	}
	defer func() { _ = unix.Close(fd) }()
	c, raw, err := d.read(fd, &st)
	old := e.file
	switch {
	case err == nil && old != nil && !old.Held && e.id.dev == id.dev && e.id.ino == id.ino && old.Catalog.Equal(c):
		e.id = id
		return // as it was: live values only
	case err == nil && e.state == Dead && !e.skip && e.id == id && e.deadGen == c.Header.Generation1:
		d.watchHead(e, fd, &st, raw)
		return // its writer is still gone, whoever has its pid now
	}
	if old != nil && !old.Held {
		d.touches.Add(1)
	}
	switch {
	case err == nil:
		d.finish(e, fd, id, c)
	case Unfinished(err):
		d.pend(e, id, err, old)
	default:
		d.reject(e, id, err)
	}
	if e.state != Loaded {
		d.watchHead(e, fd, &st, raw)
	}
}

// watchLinks makes sure that something tells when a file changes to which the
// directory's name is not the only way.
func (d *Dir) watchLinks(e *entry, st *unix.Stat_t, path string) {
	var l unix.Stat_t
	link := st.Nlink > 1 || unix.Lstat(path, &l) != nil || l.Mode&unix.S_IFMT == unix.S_IFLNK
	if !link {
		d.in.unwatch(e)
		d.setPoll(e, false)
		return
	}
	d.setPoll(e, d.in.watchFile(e, path) != nil)
}

// read copies and parses the file. raw is its header, zero where it has none.
func (d *Dir) read(fd int, st *unix.Stat_t) (c *Catalog, raw [HeaderSize]byte, err error) {
	n, err := preadFull(fd, raw[:], 0)
	if err != nil {
		return nil, raw, err
	}
	p := parser{data: raw[:n], size: uint64(n), c: &Catalog{}}
	if st.Size >= HeaderSize {
		p.size = uint64(st.Size)
	}
	if err := p.header(); err != nil {
		return nil, raw, err
	}
	if st.Size > d.opts.MaxFileSize {
		return nil, raw, fmt.Errorf("%w: %d bytes, at most %d are taken", ErrTooBig, st.Size, d.opts.MaxFileSize)
	}
	data, real, err := d.img.read(fd, st.Size, st.Blocks)
	if err != nil {
		return nil, raw, err
	}
	c, err = parse(data, real)
	if err != nil {
		return nil, raw, err
	}
	var after [HeaderSize]byte
	if n, err := preadFull(fd, after[:], 0); err != nil || n < HeaderSize || after != raw {
		return nil, raw, &FormatError{Section: SectionHeader, Index: -1, Field: "generation", Off: offGeneration1, Err: ErrInFlux, Detail: "changed while it was read"}
	}
	return c, raw, nil
}

// finish makes e a loaded file, if its writer lives and there is room.
func (d *Dir) finish(e *entry, fd int, id fileID, c *Catalog) {
	if err := d.writer(e, id, &c.Header); err != nil {
		e.id = id
		d.bury(e, c.Header.Generation1, err)
		return
	}
	d.dropHead(e) // its place is free
	if len(d.heads) >= d.opts.MaxFiles {
		d.setOverMax(e, true)
		d.reject(e, id, fmt.Errorf("%w: at most %d are mapped", ErrTooMany, d.opts.MaxFiles))
		return
	}
	d.setOverMax(e, false)
	m, err := mapFile(fd, id.size)
	if err != nil {
		d.reject(e, id, err)
		return
	}
	d.unload(e)
	e.id = id
	e.file = &File{Name: e.name, Catalog: c, id: id, m: m, dir: d}
	d.changed = true
	tag := native.Uint64(append([]byte(Tag), native.AppendUint32(nil, c.Header.Version)...))
	d.addHead(e, m, tag, c.Header.Generation1, c.Header.Generation2)
	d.set(e, Loaded, nil)
}

// writer decides whether the writer of the file is alive.
func (d *Dir) writer(e *entry, id fileID, h *Header) error {
	pid := int32(0)
	if h.Flags&FlagProcess != 0 && d.opts.Process != ProcessOff {
		pid = h.Process
	}
	if e.pid != 0 && e.pid != pid {
		d.ps.unwatch(e, e.pid)
		e.pid = 0
	}
	if pid <= 0 {
		return nil
	}
	if !d.ps.watch(e, pid) {
		return fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	e.pid = pid
	if d.opts.Process == ProcessStrict {
		if mapped, known := maps(pid, id); known && !mapped {
			d.ps.unwatch(e, pid)
			e.pid = 0
			return fmt.Errorf("process %d does not map the file: %w", pid, ErrGone)
		}
	}
	return nil
}

// pend makes e a pending file. What it was before stays visible for a while,
// without values: its writer is about to publish it again.
func (d *Dir) pend(e *entry, id fileID, err error, old *File) {
	until := e.until
	d.unload(e)
	if e.pid != 0 {
		d.ps.unwatch(e, e.pid)
		e.pid = 0
	}
	e.id = id
	if old != nil {
		if !old.Held {
			old = &File{Name: e.name, Catalog: old.Catalog, Held: true}
			until = time.Now().Add(heldFor)
			d.held = append(d.held, e)
		}
		e.file, e.until = old, until
	}
	d.set(e, Pending, err)
}

// watchHead maps the header of a file that is not loaded, so that the writer's
// last store is seen. Files too short for one grow with an event.
func (d *Dir) watchHead(e *entry, fd int, st *unix.Stat_t, raw [HeaderSize]byte) {
	if st.Size < HeaderSize || len(d.heads) >= d.opts.MaxFiles || e.head >= 0 {
		if st.Size >= HeaderSize && e.head < 0 {
			d.setPoll(e, true)
		}
		return
	}
	m, err := mapFile(fd, HeaderSize)
	if err != nil {
		d.setPoll(e, true)
		return
	}
	e.hm = m
	d.addHead(e, m, native.Uint64(raw[:]), native.Uint64(raw[offGeneration1:]), native.Uint64(raw[offGeneration2:]))
}
