package mmvimage

import (
	"encoding/binary"
	"os"
	"path/filepath"
)

// PutU32 patches 4 bytes at off of an image in host order.
func PutU32(image []byte, off uint64, v uint32) { binary.NativeEndian.PutUint32(image[off:], v) }

// PutU64 patches 8 bytes at off of an image in host order.
func PutU64(image []byte, off, v uint64) { binary.NativeEndian.PutUint64(image[off:], v) }

// GetU32 is the 4 bytes at off of an image in host order.
func GetU32(image []byte, off uint64) uint32 { return binary.NativeEndian.Uint32(image[off:]) }

// GetU64 is the 8 bytes at off of an image in host order.
func GetU64(image []byte, off uint64) uint64 { return binary.NativeEndian.Uint64(image[off:]) }

// Write puts the image under that path, readable by everybody and complete at once: a hidden temporary file in the same
// directory, renamed. What was there before is another inode and keeps its bytes.
func Write(path string, image []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(image)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
