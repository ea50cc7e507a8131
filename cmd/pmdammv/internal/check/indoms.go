package check

import (
	"bytes"

	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/reader"
)

// indom is an indom that the agent uses.
type indom struct {
	index  int
	off, n uint64         // of its instances
	names  map[int32]bool // those kept, by internal id
	kept   []bool         // by place
}

func (w *walk) allInDoms() {
	w.indoms = map[uint32]*indom{}
	sec := w.section[reader.SectionInDoms]
	left := w.Size() / w.Elem(reader.SectionInstances)
	numbers := map[uint32]uint32{} // PCP's number of an indom, to its serial
	for i := range int(sec.n) {
		off := sec.off + uint64(i)*reader.InDomSize
		d, ok := w.InDom(off)
		if !ok {
			return
		}
		if w.indoms[d.Serial] != nil {
			w.fault("indom-twice", reader.SectionInDoms, i, "serial", off, "serial %d occurs twice", d.Serial)
			continue
		}
		if d.Serial == 0 {
			w.fault("indom-zero", reader.SectionInDoms, i, "serial", off, "the serial is 0")
		}
		w.collision(numbers, d.Serial, i, off)
		in := &indom{index: i, off: d.Offset, n: uint64(d.Count), names: map[int32]bool{}}
		if d.Count > 0 && !w.Inside(d.Offset, uint64(d.Count), w.Elem(reader.SectionInstances)) {
			w.fault("indom-outside", reader.SectionInDoms, i, "offset", off+8, "%d instances from %d on do not fit into a file of %d bytes", d.Count, d.Offset, w.Size())
			in.n = 0
		}
		w.indoms[d.Serial] = in
		if in.n > left {
			w.fault("instances-twice", reader.SectionInDoms, i, "count", off+4, "%d instances, with those before more than the file has room for", d.Count)
			return
		}
		left -= in.n
		w.text(reader.SectionInDoms, i, "shorttext", off+16, d.Short)
		w.text(reader.SectionInDoms, i, "helptext", off+24, d.Help)
		w.instances(in, off)
	}
}

// collision tells of serials that come out alike as PCP makes indom numbers of
// them: cluster << 11 or serial, 22 bits of it.
func (w *walk) collision(numbers map[uint32]uint32, serial uint32, i int, off uint64) {
	cluster := w.Header.Cluster
	if cluster <= 0 || cluster > 4095 {
		return // that depends on which one is chosen
	}
	n := (uint32(cluster)<<11 | serial) & 0x3fffff
	if other, taken := numbers[n]; taken {
		w.fault("indom-collision", reader.SectionInDoms, i, "serial", off, "serials %d and %d of cluster %d both come to indom %d", other, serial, cluster, n)
		return
	}
	numbers[n] = serial
}

func (w *walk) instances(d *indom, at uint64) {
	elem := w.Elem(reader.SectionInstances)
	d.kept = make([]bool, d.n)
	alike := map[string]int{}
	for k := range int(d.n) {
		off := d.off + uint64(k)*elem
		in, ok := w.Instance(off)
		if !ok {
			return
		}
		i, inSection := w.entry(reader.SectionInstances, off)
		if !inSection {
			i = k
		}
		w.instance(d, k, i, off, &in)
		if in.InDom != at {
			w.fault("instance-indom", reader.SectionInstances, i, "indom", off, "it names the indom at %d, but that at %d has it", in.InDom, at)
		}
		if !d.kept[k] {
			continue
		}
		first, _, _ := bytes.Cut(in.Name.Text, []byte{' '})
		if o, dup := alike[string(first)]; dup {
			w.fault("instance-alike", reader.SectionInstances, i, "name", off+16, "%.80q and instance %d of the indom are alike up to the first space", in.Name.Text, o)
		} else {
			alike[string(first)] = k
		}
	}
}

// instance looks at instance k of d, and keeps it if the agent does.
func (w *walk) instance(d *indom, k, i int, off uint64, in *image.Instance) {
	const s = reader.SectionInstances
	switch name := in.Name; {
	case !name.OK && name.Off == 0:
		w.fault("instance-name", s, i, "name", off+16, "instance %d has no name", in.Internal)
		return
	case !name.OK:
		w.fault("instance-name", s, i, "name", off+16, "the name of instance %d, at %d, does not lie in a file of %d bytes", in.Internal, name.Off, w.Size())
		return
	case len(name.Text) == 0:
		w.fault("instance-name", s, i, "name", off+16, "the name of instance %d is empty", in.Internal)
		return
	case name.Cut && name.Off == 0:
		w.fault("name-unterminated", s, i, "name", off+16, "no NUL in its 64 bytes")
	case name.Cut:
		w.text(s, i, "name", off+16, name.Off)
	}
	switch {
	case in.Internal == -1:
		w.fault("instance-id", s, i, "internal", off+12, "%.80q has the number -1", in.Name.Text)
		return
	case d.names[in.Internal]:
		w.fault("instance-twice", s, i, "internal", off+12, "%.80q has the number %d, which is another one's", in.Name.Text, in.Internal)
	default:
		d.names[in.Internal] = true
	}
	d.kept[k] = true
}
