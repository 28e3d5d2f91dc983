// Package hold keeps the program from ending while no host serves a shard.
package hold

// Hold calls a function of the program before a shard is fenced, and another one when a host serves the shard again, or the mover can do no more about
// it. One goroutine uses it.
type Hold struct {
	Begin func() (release func()) // may be nil

	release func()
}

// Take calls Begin, unless the hold is taken.
func (h *Hold) Take() {
	if h.release == nil && h.Begin != nil {
		h.release = h.Begin()
	}
}

// Release ends what Take began.
func (h *Hold) Release() {
	if h.release != nil {
		h.release()
		h.release = nil
	}
}
