package document

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kiloshard/kiloshard/shards"
)

// Lookup returns the value of a variable in a DSN.
type Lookup func(name string) (value string, ok bool)

// Reader parses the documents of one cluster. It is safe for concurrent use.
//
// It keeps the last error, so that a service that watches a bad document does not parse it again and again.
type Reader struct {
	local    shards.Config // the config that names the store
	lookup   Lookup
	showOnly bool // callers show maps, and connect to no host

	mu      sync.Mutex // guards what follows
	badName string
	badText []byte
	bad     error
}

// NewReader returns a reader of documents in the store that a config names. For a nil lookup no variable is set.
func NewReader(local shards.Config, lookup Lookup) *Reader {
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	return &Reader{local: local, lookup: lookup}
}

// Local returns the config that names the store.
func (r *Reader) Local() shards.Config { return r.local }

// KeepUnset returns a reader that keeps unset variables as they are written, and all variables of a document that needs
// more than it is trusted with, for callers that connect to no host.
func (r *Reader) KeepUnset() *Reader {
	return &Reader{local: r.local, showOnly: true, lookup: func(name string) (string, bool) {
		if value, ok := r.lookup(name); ok {
			return value, true
		}
		return asWritten(name)
	}}
}

// asWritten is a [Lookup] that keeps all variables.
func asWritten(name string) (string, bool) { return "${" + name + "}", true }

// Map returns the map of a document that is stored as a version. Errors call the document name.
func (r *Reader) Map(name string, version int, text []byte) (*shards.Map, error) {
	c, err := r.Config(name, text)
	if err != nil {
		return nil, err
	}
	if r.local.Cluster != "" && c.Cluster != r.local.Cluster {
		return nil, &shards.FieldError{
			File: name, Field: "cluster", Found: fmt.Sprintf("the map of another cluster, %q", c.Cluster), Expected: fmt.Sprintf("%q", r.local.Cluster),
		}
	}
	local := r.local
	if !r.local.Remote() {
		local.Store, local.Migrations, local.PasswordCommand = c.Store, c.Migrations, c.PasswordCommand
	} else if err := CheckTrust(r.local.Store, c); err != nil {
		if !r.showOnly {
			return nil, Located(err, name)
		}
		if c, err = shards.Parse(name, text, asWritten); err != nil {
			return nil, err
		}
	}
	c.Version = version
	m, err := c.WithLocal(local).Map()
	return m, Located(err, name)
}

// Config parses a document. It returns the same error for the same bad document without parsing it again, except that
// an unset variable may be set by then.
func (r *Reader) Config(name string, text []byte) (shards.Config, error) {
	if err := r.known(name, text); err != nil {
		return shards.Config{}, err
	}
	var unset atomic.Bool // the config keeps the function
	c, err := shards.Parse(name, text, func(variable string) (string, bool) {
		value, ok := r.lookup(variable)
		if !ok {
			unset.Store(true)
		}
		return value, ok
	})
	if err != nil && !unset.Load() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.badName, r.badText, r.bad = name, bytes.Clone(text), err
	}
	return c, err
}

// known returns the error of the last bad document if this is the same one.
func (r *Reader) known(name string, text []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bad != nil && name == r.badName && bytes.Equal(text, r.badText) {
		return r.bad
	}
	return nil
}

// Located adds the name of a document to a [shards.FieldError] without one, and returns it.
func Located(err error, name string) error {
	if e := (*shards.FieldError)(nil); errors.As(err, &e) && e.File == "" {
		e.File = name
	}
	return err
}
