package mapstore

import (
	"crypto/sha256"
	"strings"
	"sync"
)

// refusals are the latest documents of which no map could be made, and why, so that whoever writes into a store does not have each
// watching service read the same one again and again. It is safe for concurrent use.
type refusals struct {
	mu  sync.Mutex
	all map[refused]error
}

// refused is a document, and how it was read.
type refused struct {
	name    string
	version int // -1 of a document that was read as it is written
	shows   bool
	sum     [sha256.Size]byte
}

const mostRefusals = 32

// remember returns what read does, or the error that it returned for the same document before. A variable that is not set may be
// set by now.
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
