package pcpwire

import "strconv"

// Units is the dimension and scale of a metric (pmUnits), as on the wire: from
// the top, four signed bits each for the exponents of space, time and count,
// four bits each for the scales of space and time (unsigned) and of count
// (signed), five bits for an extra unit (signed) and three for its scale. The
// extra unit is used since PCP 7.2 and was zero before.
type Units uint32

// Scales of space, powers of 1024 bytes (PM_SPACE_*).
const (
	SpaceByte = iota
	SpaceKByte
	SpaceMByte
	SpaceGByte
	SpaceTByte
	SpacePByte
	SpaceEByte
	SpaceZByte
	SpaceYByte
)

// Scales of time (PM_TIME_*).
const (
	TimeNSec = iota
	TimeUSec
	TimeMSec
	TimeSec
	TimeMin
	TimeHour
)

// NewUnits builds Units without an extra unit. The arguments are in the order of
// PCP's PMDA_PMUNITS; bits that do not fit are dropped.
func NewUnits(dimSpace, dimTime, dimCount, scaleSpace, scaleTime, scaleCount int) Units {
	return Units(uint32(dimSpace)&0xf<<28 | uint32(dimTime)&0xf<<24 | uint32(dimCount)&0xf<<20 |
		uint32(scaleSpace)&0xf<<16 | uint32(scaleTime)&0xf<<12 | uint32(scaleCount)&0xf<<8)
}

// DimSpace is the exponent of space, -8..7.
func (u Units) DimSpace() int { return int(int32(u) >> 28) }

// DimTime is the exponent of time, -8..7.
func (u Units) DimTime() int { return int(int32(u<<4) >> 28) }

// DimCount is the exponent of count, -8..7.
func (u Units) DimCount() int { return int(int32(u<<8) >> 28) }

// ScaleSpace is one of SpaceByte..SpaceYByte, or an unknown scale up to 15.
func (u Units) ScaleSpace() int { return int(u >> 16 & 0xf) }

// ScaleTime is one of TimeNSec..TimeHour, or an unknown scale up to 15.
func (u Units) ScaleTime() int { return int(u >> 12 & 0xf) }

// ScaleCount is a power of ten, -8..7.
func (u Units) ScaleCount() int { return int(int32(u<<20) >> 28) }

// ExtraUnit is 1 temperature, 2 voltage, 3 current, 4 power; negative: per that unit; 0: none.
func (u Units) ExtraUnit() int { return int(int32(u<<24) >> 27) }

// ExtraScale is the scale of the extra unit, 0..7.
func (u Units) ExtraScale() int { return int(u & 7) }

// String returns the form of pmUnitsStr, such as "Kbyte / sec", "count" or
// "/ sec"; empty for no dimension.
func (u Units) String() string {
	var b []byte
	dims := [...]struct {
		exp  int
		name string
	}{
		{sign(u.ExtraUnit()), u.extraName()},
		{u.DimSpace(), u.spaceName()},
		{u.DimTime(), u.timeName()},
		{u.DimCount(), u.countName()},
	}
	term := func(name string, exp int) {
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = append(b, name...)
		if exp != 1 {
			b = append(b, '^')
			b = strconv.AppendInt(b, int64(exp), 10)
		}
	}
	for _, d := range dims {
		if d.exp > 0 {
			term(d.name, d.exp)
		}
	}
	slash := false
	for _, d := range dims {
		if d.exp >= 0 {
			continue
		}
		if !slash {
			term("/", 1)
			slash = true
		}
		term(d.name, -d.exp)
	}
	// A scale of count without a dimension: kept by PCP for old agents.
	if len(b) == 0 && u.ScaleCount() != 0 {
		return u.countName()
	}
	return string(b)
}

func (u Units) spaceName() string {
	names := [...]string{"byte", "Kbyte", "Mbyte", "Gbyte", "Tbyte", "Pbyte", "Ebyte", "Zbyte", "Ybyte"}
	if s := u.ScaleSpace(); s < len(names) {
		return names[s]
	}
	return "space-" + strconv.Itoa(u.ScaleSpace())
}

func (u Units) timeName() string {
	names := [...]string{"nanosec", "microsec", "millisec", "sec", "min", "hour"}
	if s := u.ScaleTime(); s < len(names) {
		return names[s]
	}
	return "time-" + strconv.Itoa(u.ScaleTime())
}

func (u Units) countName() string {
	switch s := u.ScaleCount(); s {
	case 0:
		return "count"
	case 1:
		return "count x 10"
	default:
		return "count x 10^" + strconv.Itoa(s)
	}
}

// extraName is the extra unit with its scale, such as "temperature (C)".
func (u Units) extraName() string {
	extra := []struct {
		name   string
		scales []string
	}{
		1: {"temperature", []string{1: "C", 2: "F", 3: "K"}},
		2: {"voltage", []string{1: "V", 2: "mV", 3: "uV"}},
		3: {"current", []string{1: "A", 2: "mA", 3: "uA"}},
		4: {"power", []string{1: "kW", 2: "W", 3: "mW", 4: "uW"}},
	}
	e, s := max(u.ExtraUnit(), -u.ExtraUnit()), u.ExtraScale()
	switch {
	case e >= len(extra):
		return "extra-" + strconv.Itoa(e)
	case s == 0 || s >= len(extra[e].scales):
		return extra[e].name + " (scale-" + strconv.Itoa(s) + ")"
	}
	return extra[e].name + " (" + extra[e].scales[s] + ")"
}

func sign(n int) int { return min(max(n, -1), 1) }
