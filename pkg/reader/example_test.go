package reader_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"pmdammv/pkg/reader"
	"pmdammv/test/mmvimage"
)

// A program that is instrumented has a file in the directory; an agent looks
// at the directory before each answer, and loads values while it makes it.
func ExampleDir() {
	path, err := os.MkdirTemp("", "mmv")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(path) //nolint:errcheck // an example
	image := mmvimage.New(2).
		InDom(1, "", "", mmvimage.Inst{ID: 0, Name: "north"}, mmvimage.Inst{ID: 1, Name: "south"}).
		Metric(mmvimage.Metric{
			Name: "visitors", Item: 1, Type: mmvimage.U32, Sem: mmvimage.Counter, InDom: 1,
			Values: []mmvimage.Value{mmvimage.Int32(12), mmvimage.Int32(7)},
		}).
		Metric(mmvimage.Metric{
			Name: "open", Item: 2, Type: mmvimage.String, Sem: mmvimage.Discrete, Values: []mmvimage.Value{mmvimage.Text("until six")},
		})
	if err := mmvimage.Write(filepath.Join(path, "museum"), image.Build()); err != nil {
		log.Fatal(err)
	}

	dir, err := reader.Open(path, reader.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	snapshot, looks := dir.Look(), dir.Looks()

	var values reader.Values // used again for the next answer
	dir.Acquire()            // nothing is unmapped until Release
	for _, f := range snapshot.Files {
		layout := f.Layout()
		if layout == nil {
			continue // it is being rewritten
		}
		for i := range f.Catalog.Metrics {
			m := &f.Catalog.Metrics[i]
			values.Reset()
			if !f.Load([]reader.Want{{Type: m.Type, Refs: layout.Refs(uint32(i))}}, &values) {
				continue // it no longer is what it was
			}
			for k, bits := range values.Bits {
				fmt.Printf("%s.%s[%d] ", f.Name, f.Catalog.Text(m.Name), values.Insts[k])
				if m.Type == reader.TypeString {
					fmt.Printf("%q\n", values.String(bits))
				} else {
					fmt.Println(uint32(bits))
				}
			}
		}
	}
	still := dir.Still(looks) // else begin again with a look
	dir.Release()
	fmt.Println("still", still)
	// Output:
	// museum.visitors[0] 12
	// museum.visitors[1] 7
	// museum.open[-1] "until six"
	// still true
}

// Parse alone needs no directory, and nothing of this host.
func ExampleParse() {
	image := mmvimage.New(1).Cluster(9999).Metric(mmvimage.Metric{Name: "m"}).Build()
	_, err := reader.Parse(image)
	fmt.Println(err)
	_, err = reader.Parse(image[:12])
	fmt.Println(err, reader.Unfinished(err))
	// Output:
	// header cluster at offset 36: out of range: 9999 is not in 0..4095
	// header at offset 0: file ends before its header: 12 bytes of 40 true
}
