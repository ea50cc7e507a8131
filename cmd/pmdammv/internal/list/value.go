package list

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"pmdammv/pkg/pcpwire"
)

// printed is a value as pmPrintValue prints it.
func printed(a pcpwire.AtomValue) string {
	switch a.Type {
	case pcpwire.TypeI32:
		return strconv.FormatInt(int64(a.I32()), 10)
	case pcpwire.TypeU32:
		return strconv.FormatUint(uint64(a.U32()), 10)
	case pcpwire.TypeI64:
		return strconv.FormatInt(a.I64(), 10)
	case pcpwire.TypeU64:
		return strconv.FormatUint(a.U64(), 10)
	case pcpwire.TypeFloat:
		return general(float64(a.Float()), 8)
	case pcpwire.TypeDouble:
		return general(a.Double(), 16)
	case pcpwire.TypeString:
		return `"` + string(a.Str) + `"`
	default:
		return fmt.Sprintf("0x%x", a.Bits)
	}
}

// general is C's %g with that precision.
func general(v float64, precision int) string {
	switch {
	case math.IsNaN(v) && math.Signbit(v):
		return "-nan"
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return strings.ToLower(strings.TrimPrefix(fmt.Sprint(v), "+"))
	}
	// Go's %e has at least two digits in the exponent, as C's.
	s := strconv.FormatFloat(v, 'e', precision-1, 64)
	mantissa, exp, _ := strings.Cut(s, "e")
	x, _ := strconv.Atoi(exp) // it is a number
	if x < -4 || x >= precision {
		return shortened(mantissa) + "e" + exp
	}
	return shortened(strconv.FormatFloat(v, 'f', precision-1-x, 64))
}

// shortened cuts off zeros after the point.
func shortened(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// number is a value for JSON: numbers as numbers, texts as texts, and NaN and
// infinity as texts.
func number(a pcpwire.AtomValue) any {
	switch a.Type {
	case pcpwire.TypeI32:
		return a.I32()
	case pcpwire.TypeU32:
		return a.U32()
	case pcpwire.TypeI64:
		return a.I64()
	case pcpwire.TypeU64:
		return a.U64()
	case pcpwire.TypeFloat:
		if f := float64(a.Float()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return a.Float()
		}
		return scraped(float64(a.Float()))
	case pcpwire.TypeDouble:
		if f := a.Double(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		return scraped(a.Double())
	default:
		return string(a.Str)
	}
}

// scraped names what is no finite number.
func scraped(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case f > 0:
		return "+Inf"
	default:
		return "-Inf"
	}
}
