package check

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"pmdammv/pkg/reader"
)

// elsewhere says where else there are MMV files: a program may have had another
// PCP_TMP_DIR than the agent.
func elsewhere(o Options) string {
	var b strings.Builder
	for _, dir := range o.Other {
		if sameDir(dir, o.Agent.Dir) {
			continue
		}
		if n := mmvFiles(dir); n > 0 {
			fmt.Fprintf(&b, "; but %d in %s", n, dir)
		}
	}
	return b.String()
}

// mmvFiles counts the MMV files in a directory.
func mmvFiles(dir string) int {
	n := 0
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if e.Type().IsRegular() && tagged(filepath.Join(dir, e.Name())) {
			n++
		}
	}
	return n
}

func tagged(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	tag := make([]byte, len(reader.Tag))
	_, err = io.ReadFull(f, tag)
	return err == nil && string(tag) == reader.Tag
}
