package cli

import (
	"errors"
	"io/fs"
	"os"

	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/pkg/pcpwire"
)

// Hint says what to do about an error, "" where that is plain.
func Hint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "MMV files are in $PCP_TMP_DIR/mmv of the host where the program runs; 'pmdammv check' tells where that is here"
	case errors.Is(err, fs.ErrPermission):
		return "try again as root, or as the user that the file belongs to"
	case errors.Is(err, image.ErrNotRegular):
		return "name a file; 'pmdammv check DIRECTORY' looks at all files of a directory"
	case errors.Is(err, pcpwire.ErrName):
		return "'pmdammv list' shows all names, and 'pmdammv check' why some are missing"
	}
	return ""
}

// IsDir tells whether there is a directory of that name.
func IsDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
