package exporter_test

import (
	"os"
	"strings"
	"testing"

	"pmdammv/pkg/pmda"
)

// What a change leaves behind goes when the last answer that may use it is made,
// without another change.
func TestLetGo(t *testing.T) {
	b := newBox(t)
	b.put("a", one(1))
	b.put("b", one(2))
	b.start()
	other := b.e.Open()
	defer other.Close()
	other.Begin()
	b.remove("a")
	b.look()
	b.ask(func(pmda.Session) {})
	equal(t, "mappings while an answer is made", b.mapped(), 2)
	other.End()
	other.After()
	equal(t, "mappings", b.mapped(), 1)
}

// mapped counts the mappings of files of the directory.
func (b *box) mapped() (n int) {
	b.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, " "+b.dir+"/") {
			n++
		}
	}
	return n
}
