package check

import (
	"strconv"
	"strings"
)

// configured tells whether a pmcd.conf has a line for the agent: its name and
// domain come first in it.
func configured(text, name string, domain uint32) bool {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) > 2 && f[0] == name && f[1] == strconv.FormatUint(uint64(domain), 10) {
			return true
		}
	}
	return false
}
