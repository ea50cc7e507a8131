package test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pmdammv/test/mmvimage"
)

// single is a file with one metric, "value", in that cluster.
func single(cluster, value int) []byte {
	return mmvimage.New(1).Cluster(int32(cluster)).Metric(mmvimage.Metric{
		Name: "value", Item: 1, Type: mmvimage.I64, Sem: mmvimage.Instant,
		Values: []mmvimage.Value{mmvimage.Int(int64(value))},
	}).Build()
}

// writeInPlace writes a file as libraries do: under its final name from the start, and what completes it last.
func writeInPlace(path string, image []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	begun := bytes.Clone(image)
	mmvimage.PutU64(begun, mmvimage.HdrG2, 0)
	_, err = f.Write(begun)
	if err == nil {
		_, err = f.WriteAt(image[mmvimage.HdrG2:mmvimage.HdrG2+8], mmvimage.HdrG2)
	}
	return errors.Join(err, f.Close())
}

func write(t testing.TB, path string, image []byte) {
	t.Helper()
	if err := mmvimage.Write(path, image); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestAtOnce: a file that is complete when a request is made is in the answer, and one that is gone is not.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	p := startPMCD(t)
	for i := range 30 {
		file := filepath.Join(p.mmv, fmt.Sprintf("f%d", i%3))
		write(t, file, single(7, i))
		name := "mmv." + filepath.Base(file)
		expect(t, "a new file", p.pminfo(t, "-f", name), fmt.Sprintf("%s.value\n    value %d\n", name, i))
		remove(t, file)
		expect(t, "a removed file", p.pminfo(t, "-f", name), "Unknown metric name")
	}
}

// TestAtOnceOften is TestAtOnce without the time that pmcd and pminfo take, so with less between change and request.
func TestAtOnceOften(t *testing.T) {
	t.Parallel()
	mmv, env := agentDir(t)
	d := startDbpmda(t, env, must[string](t)(agentPath()))
	for i := range 1000 {
		name := fmt.Sprintf("f%d", i%3)
		file, image := filepath.Join(mmv, name), single(7, i)
		if i%2 == 0 {
			write(t, file, image)
		} else if err := writeInPlace(file, image); err != nil {
			t.Fatal(err)
		}
		expect(t, "a new file", d.ask(t, "fetch mmv."+name+".value"), fmt.Sprintf("value %d\n", i))
		// Not only removed: replaced by something else, and by half a file.
		switch i % 4 {
		case 0:
			remove(t, file)
			expect(t, "a removed file", d.ask(t, "pmid mmv."+name+".value"), "Unknown metric name")
		case 1:
			write(t, file, single(8, -i))
			expect(t, "a replaced file", d.ask(t, "fetch mmv."+name+".value"), "70.8.1", fmt.Sprintf("value %d\n", -i))
			remove(t, file)
		case 2:
			write(t, file, image[:len(image)/2])
			expect(t, "half a file", d.ask(t, "pmid mmv."+name+".value"), "Unknown metric name")
			remove(t, file)
		case 3:
			remove(t, file)
			expect(t, "the directory", d.ask(t, "traverse mmv."+name), "Unknown metric name")
		}
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
}

// TestProcess: a file that asks for it goes with its writer, although it is still there; others stay.
func TestProcess(t *testing.T) {
	need(t, mmvHeader)
	t.Parallel()
	writerBin := must[string](t)(writerPath())
	p := startPMCD(t)
	for i := range 10 {
		w := startWriter(t, p.env(), writerBin, "1", "short", "5", strconv.Itoa(int(mmvimage.Process)))
		w.step(t)
		expect(t, "a running program", p.pminfo(t, "-f", "mmv.short.count"), "value 1")
		w.end(t)
		if _, err := os.Stat(filepath.Join(p.mmv, "short")); err != nil {
			t.Fatal(err)
		}
		expect(t, "an ended program", p.pminfo(t, "-f", "mmv.short.count"), "Unknown metric name")
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
}

// TestBadFilesUnderPMCD: many bad files at once, some of which were good, do no harm to a good one, nor to the agent.
func TestBadFilesUnderPMCD(t *testing.T) {
	t.Parallel()
	p := startPMCD(t)
	write(t, filepath.Join(p.mmv, "good"), single(4000, 424242))
	for i, bad := range badImages() {
		file := filepath.Join(p.mmv, fmt.Sprintf("bad%d", i))
		if i%2 == 0 {
			write(t, file, single(100+i, i))
			expect(t, "a file before it goes bad", p.pminfo(t, "-f", "mmv.bad"+strconv.Itoa(i)), fmt.Sprintf("value %d\n", i))
			if err := os.WriteFile(file, bad.image, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, file, bad.image)
	}
	all := p.pminfo(t, "-dfmtTl", "mmv")
	expect(t, "the good file", p.pminfo(t, "-f", "mmv.good"), "value 424242\n")
	for i, bad := range badImages() {
		if bad.pending && i%2 == 0 {
			continue
		}
		if exports := strings.Contains(all, fmt.Sprintf("\nmmv.bad%d.", i)); exports != bad.exports {
			t.Errorf("%s: exports metrics is %v, want %v", bad.name, exports, bad.exports)
		}
	}
}

// TestBadFiles: one bad file after the other beside a good one, and every request there is about it.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	mmv, env := agentDir(t)
	d := startDbpmda(t, env, must[string](t)(agentPath()))
	write(t, filepath.Join(mmv, "good"), single(4000, 424242))
	file := filepath.Join(mmv, "bad")
	for _, bad := range badImages() {
		write(t, file, bad.image)
		if names := d.traverse(t, "mmv.bad"); len(names) > 0 != bad.exports {
			t.Errorf("%s: exports %q", bad.name, names)
		}
		for _, c := range questions(d, t, "mmv.bad") {
			d.ask(t, c)
		}
		expect(t, bad.name+": the good file", d.ask(t, "fetch mmv.good.value"), "value 424242\n")
		// The same bytes written over a file that was loaded.
		write(t, file, fullImage(3).Build())
		d.ask(t, "fetch mmv.bad.m.count")
		if err := os.WriteFile(file, bad.image, 0o600); err != nil {
			t.Fatal(err)
		}
		d.ask(t, "fetch mmv.bad.m.count")
		d.ask(t, "fetch mmv.bad.m.text")
		if !bad.exports && !bad.pending {
			expect(t, bad.name+" over another", d.ask(t, "traverse mmv.bad"), "Unknown metric name")
		}
		expect(t, bad.name+" over another: the good file", d.ask(t, "fetch mmv.good.value"), "value 424242\n")
		remove(t, file)
		expect(t, bad.name+" removed", d.ask(t, "traverse mmv.bad"), "Unknown metric name")
		if t.Failed() {
			t.Fatalf("at %s", bad.name)
		}
	}
}
