package pcpwire

// A keeper decides when a buffer that was needed once for something huge is let
// go: when it is over 1 MiB and the last 64 uses needed less than a quarter of it.
type keeper struct{ idle int }

const (
	keepBytes = 1 << 20
	keepUses  = 64
)

// done is told of each use; true means: drop the buffer.
func (k *keeper) done(capacity, used int) bool {
	if capacity <= keepBytes || used > capacity/4 {
		k.idle = 0
		return false
	}
	k.idle++
	if k.idle < keepUses {
		return false
	}
	k.idle = 0
	return true
}
