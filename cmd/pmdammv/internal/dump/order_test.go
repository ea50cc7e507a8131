package dump_test

import "encoding/binary"

// other is the byte order that this machine does not have.
func other() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}
