package exporter_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"pmdammv/pkg/pcpwire"
	"pmdammv/pkg/pmda"
	"pmdammv/test/mmvimage"
)

// FuzzLive changes a file as the input says, 4 bytes a step (what, where as 2
// bytes, with what), over and over while requests of all kinds are answered. A
// steady file beside it has its values in every reply, in the same one too; and
// the file itself is right as soon as it is written whole.
func FuzzLive(f *testing.F) {
	f.Add([]byte{0, 16, 0, 0})                                      // a generation
	f.Add([]byte{1, 0, 0, 0, 3, 0, 0, 0})                           // truncated and extended
	f.Add([]byte{1, 100, 1, 0, 2, 0, 0, 0, 1, 0, 8, 0, 4, 0, 0, 0}) // cut, whole, cut, replaced
	f.Add([]byte{0, 47, 0, 255, 0, 130, 0, 255, 0, 36, 0, 5})       // places, types, the steady file's cluster
	image := wild().Build()
	f.Fuzz(func(t *testing.T, steps []byte) {
		b := newBox(t)
		b.put("steady", mmvimage.New(1).Cluster(5).InDom(1, "", "", insts("0:a", "1:b")...).
			Metric(metric("one", 1, 41)).Metric(many("each", 2, 1, 42, 43)))
		b.write("wild", image)
		b.start()
		one, each := b.pmid("mmv.steady.one"), b.pmid("mmv.steady.each")

		stop, stopped := make(chan struct{}), make(chan error, 1)
		go func() { stopped <- disturb(filepath.Join(b.dir, "wild"), image, steps, stop) }()
		for range 10 {
			pmids := append([]pcpwire.PMID{one}, b.askAll("wild")...)
			sets := b.fetch(nil, append(pmids, each)...).Sets
			equal(t, "steady.one", b.show(&sets[0]), "41")
			equal(t, "steady.each", b.show(&sets[len(sets)-1]), "0=42 1=43")
			equal(t, "steady's name", b.pmids("mmv.steady.one"), "5.1")
		}
		close(stop)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		b.write("wild", image)
		equal(t, "the whole file", b.values("mmv.wild.each"), "5=-7 1=8")
		equal(t, "its text", b.values("mmv.wild.text"), "some text")
	})
}

// wild is a file with something of everything.
func wild() *mmvimage.Image {
	return mmvimage.New(3).InDom(1, "one-line", "help", insts("5:five", "1:one")...).
		Metric(many("each", 1, 1, -7, 8)).
		Metric(mmvimage.Metric{Name: "text", Item: 2, Type: mmvimage.String, Values: []mmvimage.Value{mmvimage.Text("some text")}}).
		Metric(mmvimage.Metric{Name: "timed", Item: 3, Type: mmvimage.Elapsed, Short: "short", Values: []mmvimage.Value{mmvimage.Timed(1, -1)}}).
		Metric(mmvimage.Metric{Name: "float", Item: 4, Type: mmvimage.Float, InDom: 1}).
		Label(mmvimage.LabelItem, 1, -1, `{"a":1}`).Label(mmvimage.LabelInstances, 1, 5, `{"b":2}`)
}

// disturb does the steps to the file, again and again until stop is closed:
// stores through a mapping, of which nothing tells, and all else.
func disturb(path string, image, steps []byte, stop <-chan struct{}) error {
	for {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		err = disturbOnce(file, path, image, steps, stop)
		if cerr := file.Close(); err == nil {
			err = cerr
		}
		select {
		case <-stop:
			return err
		default:
		}
		if err != nil {
			return err
		}
	}
}

func disturbOnce(file *os.File, path string, image, steps []byte, stop <-chan struct{}) error {
	size := len(image)
	if err := file.Truncate(int64(size)); err != nil {
		return err
	}
	mem, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(mem) //nolint:errcheck // it is one
	for ; len(steps) >= 4 && err == nil; steps = steps[4:] {
		at := int(binary.LittleEndian.Uint16(steps[1:])) % len(image)
		switch steps[0] % 5 {
		case 0:
			if at < size { // beyond the end would be a fault here, too
				mem[at] = steps[3]
			}
		case 1:
			size = at
			err = file.Truncate(int64(size))
		case 2:
			_, err = file.WriteAt(image, 0)
			size = len(image)
		case 3:
			err = file.Truncate(int64(len(image)))
			size = len(image)
		case 4: // what is mapped is no longer the file of that name
			err = mmvimage.Write(path, image)
		}
		select {
		case <-stop:
			return err
		default:
		}
	}
	return err
}

// askAll asks for all there is below a file, and returns the PMIDs.
func (b *box) askAll(file string) (pmids []pcpwire.PMID) {
	b.Helper()
	names, _ := b.traverse("mmv." + file)
	_, _ = b.children("mmv." + file)
	for _, n := range names {
		p, err := b.lookup(n)
		if err != nil {
			continue // gone meanwhile
		}
		pmids = append(pmids, p)
		b.namesOf(p)
		b.labels(pcpwire.LabelItem, uint32(p), pcpwire.InstNull)
		b.labels(pcpwire.LabelCluster, uint32(p), pcpwire.InstNull)
		b.ask(func(s pmda.Session) {
			_, _ = s.Text(uint32(p), pcpwire.TextPMID|pcpwire.TextHelp)
			if d, err := s.Desc(p); err == nil && d.InDom != pcpwire.InDomNull {
				_, _ = s.Text(uint32(d.InDom), pcpwire.TextInDom|pcpwire.TextOneLine)
				if t, err := s.Instances(d.InDom); err == nil {
					for i := range t.Len() {
						inst, _ := t.At(i)
						s.Labels(nil, pcpwire.LabelInstances, uint32(d.InDom), inst)
					}
				}
			}
		})
	}
	return pmids
}
