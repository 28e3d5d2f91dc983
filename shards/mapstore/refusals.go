package mapstore

import (
	"crypto/sha256"
	"strings"
	"sync"
)

// refusals are the latest documents that are not maps, with their errors, so that watching services do not parse the same
// bad document again and again. It is safe for concurrent use.
type refusals struct {
	mu  sync.Mutex
	all map[refused]error
}

// refused identifies a document, and how it was read.
type refused struct {
	name    string
	version int // -1 for a document that was read as written
	shows   bool
	sum     [sha256.Size]byte
}

const mostRefusals = 32

// remember returns the result of read, or the error that it returned for the same document before. It does not remember an
// error about an unset variable, which may be set by now.
func remember[T any](d documents, name string, version int, text []byte, read func() (T, error)) (T, error) {
	if d.bad == nil {
		return read()
	}
	key := refused{name, version, d.shows, sha256.Sum256(text)}
	d.bad.mu.Lock()
	known := d.bad.all[key]
	d.bad.mu.Unlock()
	if known != nil {
		var none T
		return none, known
	}
	found, err := read()
	if err != nil && !strings.Contains(err.Error(), "is not set") {
		d.bad.mu.Lock()
		defer d.bad.mu.Unlock()
		if len(d.bad.all) >= mostRefusals || d.bad.all == nil {
			d.bad.all = map[refused]error{}
		}
		d.bad.all[key] = err
	}
	return found, err
}
