package image

import "bytes"

// Guess says what a file that does not begin with MMV may be, "" for no idea.
func Guess(data []byte) string {
	for _, k := range []struct{ magic, what string }{
		{"\x1f\x8b", "gzip data: unpack it first"},
		{"\xfd7zXZ", "xz data: unpack it first"},
		{"(\xb5/\xfd", "zstd data: unpack it first"},
		{"BZh", "bzip2 data: unpack it first"},
		{"\x7fELF", "a program"},
		{"\x00\x00\x00\x84\x50\x05\x26", "a PCP archive"},
		{"#!", "a script"},
		{"{", "JSON"},
		{"\x00VMM", "words in the wrong order"},
	} {
		if bytes.HasPrefix(data, []byte(k.magic)) {
			return k.what
		}
	}
	return ""
}
