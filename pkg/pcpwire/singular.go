package pcpwire

import (
	"encoding/binary"
	"fmt"
)

// Singular adds metrics of one value each: Set32, SetFloat or Set64 for each
// of pmids, with its type and bits, in one go. TypeNoSupport stands for a
// metric without a value. The three slices are of one length, else ErrCount;
// types are TypeI32, TypeU32, TypeI64, TypeU64, TypeFloat, TypeDouble or
// TypeNoSupport, else ErrRange.
func (b *ResultBuilder) Singular(pmids []PMID, types []Type, bits []uint64) {
	const set, block = setHeader + valueSize, blockHeader + 8
	n := len(pmids)
	if len(types) != n || len(bits) != n {
		b.fail(fmt.Errorf("%d metrics, %d types, %d values: %w", n, len(types), len(bits), ErrCount))
	}
	if !b.room(set*n, block*n) {
		return
	}
	p, q := b.buf[b.set:b.set+set*n], b.buf[b.block:b.block+block*n]
	sets, blocks := len(p), len(q)
	word := b.pointer()
	for i := 0; i < n; {
		switch t := types[i]; t { // many of one type follow each other
		case TypeI32, TypeU32:
			for ; i < n && types[i] == t; i++ {
				s := (*[set]byte)(p)
				binary.BigEndian.PutUint64(s[:], uint64(pmids[i])<<32|1)
				binary.BigEndian.PutUint64(s[8:], uint64(InSitu)<<32|uint64(instNullWord))
				binary.BigEndian.PutUint32(s[16:], uint32(bits[i]))
				p = p[set:]
			}
		case TypeI64, TypeU64, TypeDouble:
			head := blockWord(t, block)
			for ; i < n && types[i] == t; i++ {
				s, d := (*[set]byte)(p), (*[block]byte)(q)
				binary.BigEndian.PutUint64(s[:], uint64(pmids[i])<<32|1)
				binary.BigEndian.PutUint64(s[8:], uint64(DPtr)<<32|uint64(instNullWord))
				binary.BigEndian.PutUint32(s[16:], word)
				binary.BigEndian.PutUint32(d[:], head)
				binary.BigEndian.PutUint64(d[4:], bits[i])
				p, q, word = p[set:], q[block:], word+block/4
			}
		case TypeFloat:
			const size = blockHeader + 4
			for ; i < n && types[i] == t; i++ {
				s, d := (*[set]byte)(p), (*[size]byte)(q)
				binary.BigEndian.PutUint64(s[:], uint64(pmids[i])<<32|1)
				binary.BigEndian.PutUint64(s[8:], uint64(DPtr)<<32|uint64(instNullWord))
				binary.BigEndian.PutUint32(s[16:], word)
				binary.BigEndian.PutUint64(d[:], uint64(blockWord(TypeFloat, size))<<32|uint64(uint32(bits[i])))
				p, q, word = p[set:], q[size:], word+size/4
			}
		default:
			if t != TypeNoSupport {
				b.fail(fmt.Errorf("%v: type %v in a number: %w", pmids[i], t, ErrRange))
			}
			binary.BigEndian.PutUint64(p, uint64(pmids[i])<<32)
			p = p[8:]
			i++
		}
	}
	b.sets += n
	b.set += sets - len(p)
	b.block += blocks - len(q)
}

const instNullWord = 0xffffffff
