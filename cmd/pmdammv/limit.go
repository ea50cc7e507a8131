package main

import (
	"fmt"
	"time"
)

// A file that changes all the time, or a thousand that come and go, must not
// fill the log: so many lines at once, and then so many in a minute.
const (
	fileLines = 10
	allLines  = 500
	window    = time.Minute
)

// limiter counts lines, of one file and of all. It is not for more than one
// goroutine at a time.
type limiter struct {
	start time.Time // of the window
	all   int
	left  int // lines left out
	files map[string]int
}

// take tells whether a line may be written now, and what is to be said before
// it of those that were not.
func (l *limiter) take(file string, now time.Time) (ok bool, note string) {
	if now.Sub(l.start) >= window {
		if l.left > 0 {
			note = fmt.Sprintf("%d messages were left out", l.left)
		}
		*l = limiter{start: now, files: map[string]int{}}
	}
	if l.all >= allLines || file != "" && l.files[file] >= fileLines {
		l.left++
		return false, note
	}
	l.all++
	if file != "" {
		l.files[file]++
	}
	return true, note
}
