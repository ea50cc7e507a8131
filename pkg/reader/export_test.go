package reader

import (
	"context"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// NoPidfds makes d do without pidfds, as old kernels and some sandboxes do.
func (d *Dir) NoPidfds() { d.ps.noPidfd = true }

// SetMaxMappings is how many mappings d may have from now on.
func (d *Dir) SetMaxMappings(n int) { d.maxMaps = n }

// Watches is how many watches of the kernel d believes to have, and how many
// names, polled names and processes it knows.
func (d *Dir) Watches() (watches, entries, polled, processes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	watches = len(d.in.files)
	if d.in.dir >= 0 {
		watches++
	}
	return watches, len(d.entries), len(d.polled), len(d.ps.byPID)
}

// ParseSparse is Parse of an image with only filled bytes that are not holes.
func ParseSparse(data []byte, filled uint64) (*Catalog, error) {
	return parse(image{data: data, size: uint64(len(data))}, filled, &scratch{})
}

// ParseParts is Parse of an image that is read in parts.
func ParseParts(data []byte) (*Catalog, error) {
	return parse(image{size: uint64(len(data)), src: memory(data), windows: &[streams]window{}}, uint64(len(data)), &scratch{})
}

// memory is a source of an image.
type memory []byte

func (m memory) readAt(b []byte, off uint64) (int, error) { return copy(b, m[off:]), nil }
func (m memory) readAll() ([]byte, error)                 { return m, nil }

// SameNow is Equal of a Catalog and of one that may not know its values.
func SameNow(c, o *Catalog) bool {
	if o.lazy == nil {
		return c.Equal(o) && slices.EqualFunc(c.Remarks, o.Remarks, func(a, b *FormatError) bool { return *a == *b })
	}
	known := *c
	known.Metrics, known.values, known.RemarkCount = slices.Clone(c.Metrics), nil, o.RemarkCount
	for i := range known.Metrics {
		known.Metrics[i].first, known.Metrics[i].n = 0, 0
	}
	return known.Equal(o)
}

// WatchEvents is what Watch does with the events of w, which is none of the
// system's.
func WatchEvents(ctx context.Context, w *fsnotify.Watcher, dir string, quiet time.Duration, changed func()) {
	watch(ctx, w, dir, quiet, changed)
}

// AgeStamps makes all loaded files look as if a write had begun since they were
// read, of which no event has come yet.
func (d *Dir) AgeStamps() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.order {
		e.stamp.mtime--
	}
}

// Memory is about how many bytes the Catalog takes.
func (c *Catalog) Memory() int {
	text := 0
	for _, piece := range c.text {
		text += len(piece)
	}
	return text + 44*len(c.Metrics) + 20*len(c.InDoms) + 8*len(c.instances) + 8*len(c.values) + 16*len(c.Labels)
}
