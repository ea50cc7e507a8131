package watch

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseInterval reads an interval as PCP's tools take it (pmParseInterval):
// numbers with units, such as "5", "1.5 sec", "500msec" or "1hour30min"; a
// number without a unit is seconds.
func parseInterval(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not an interval such as 5, 1.5sec, 500msec or 1min30sec", s)
	var total float64
	rest := strings.ReplaceAll(strings.ToLower(s), " ", "")
	for first := true; first || rest != ""; first = false {
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if n < 0 {
			n = len(rest)
		}
		v, err := strconv.ParseFloat(rest[:n], 64)
		if err != nil {
			return 0, bad
		}
		rest = rest[n:]
		n = strings.IndexFunc(rest, func(r rune) bool { return r < 'a' || r > 'z' })
		if n < 0 {
			n = len(rest)
		}
		unit, ok := intervalUnit(rest[:n])
		if !ok {
			return 0, bad
		}
		rest = rest[n:]
		total += v * float64(unit)
	}
	if total < float64(time.Millisecond) || total > float64(1<<62) {
		return 0, bad
	}
	return time.Duration(total), nil
}

// intervalUnit is a unit by its name, in the plural or shortened.
func intervalUnit(name string) (time.Duration, bool) {
	switch strings.TrimSuffix(name, "s") {
	case "millisecond", "millisec", "msec", "m": // "ms"
		if name == "m" {
			return time.Minute, true
		}
		return time.Millisecond, true
	case "", "second", "sec":
		return time.Second, true
	case "minute", "min":
		return time.Minute, true
	case "hour", "h":
		return time.Hour, true
	case "day", "d":
		return 24 * time.Hour, true
	default:
		return 0, false
	}
}
