package watch

import (
	"math"
	"strconv"

	"pmdammv/pkg/pcpwire"
)

// rateUnits are those of a counter's rate, and the number by which an interval
// in seconds is multiplied before a difference is divided by it: as with pmval,
// counters of time become fractions of time.
func rateUnits(u pcpwire.Units) (text string, scale float64) {
	scale = 1
	timeScale := pcpwire.TimeSec
	if u.DimTime() != 0 {
		timeScale = u.ScaleTime()
		if timeScale > pcpwire.TimeSec {
			scale = math.Pow(60, float64(pcpwire.TimeSec-timeScale))
		} else {
			scale = math.Pow(1000, float64(pcpwire.TimeSec-timeScale))
		}
	}
	rate := pcpwire.NewUnits(u.DimSpace(), u.DimTime()-1, u.DimCount(), u.ScaleSpace(), timeScale, u.ScaleCount())
	if rate.DimSpace() == 0 && rate.DimTime() == 0 && rate.DimCount() == 0 {
		return "time utilization", scale
	}
	return rate.String(), scale
}

// rate is how fast a counter grew in that many seconds. ok is false where it
// has become smaller: it was set anew.
func rate(now, before pcpwire.AtomValue, seconds, scale float64) (r float64, ok bool) {
	a, err1 := now.Convert(pcpwire.TypeDouble)
	b, err2 := before.Convert(pcpwire.TypeDouble)
	if err1 != nil || err2 != nil || seconds <= 0 {
		return 0, false
	}
	d := a.Double() - b.Double()
	if now.Type == pcpwire.TypeU64 || now.Type == pcpwire.TypeI64 { // large ones lose their last digits as floats
		d = float64(int64(now.Bits - before.Bits))
	}
	return d / (seconds * scale), d >= 0
}

// short prints a number with four digits.
func short(v float64) string {
	a := math.Abs(v)
	switch {
	case v == 0:
		return "0"
	case math.IsNaN(v), math.IsInf(v, 0), a < 0.1, a >= 1e15:
		return strconv.FormatFloat(v, 'E', 3, 64)
	case a < 1:
		return strconv.FormatFloat(v, 'f', 4, 64)
	case a < 10:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case a < 100:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 1000:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
}

// long prints a value.
func long(a pcpwire.AtomValue) string {
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
		return strconv.FormatFloat(float64(a.Float()), 'g', -1, 32)
	case pcpwire.TypeDouble:
		return strconv.FormatFloat(a.Double(), 'g', -1, 64)
	default:
		return strconv.Quote(string(a.Str))
	}
}
