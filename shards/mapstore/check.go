package mapstore

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kiloshard/kiloshard/shards"
)

// MaxNote is the longest By and Why of a change, in bytes.
const MaxNote = 4096

// documents parses the texts of a store into maps, and turns changes into texts.
type documents struct {
	local  shards.Config // the config that names the store
	lookup func(name string) (value string, ok bool)
	shared bool // the store is not the config's own file
	shows  bool // maps are only shown, and not used to connect
	bad    *refusals
}

// check reports whether next may follow from, which has no map if there is none yet. It returns the entry to be, without
// its time, and the document to keep of it. Every store calls it before it changes anything. Its errors are refusals.
func (d documents) check(from Entry, next Change) (Entry, []byte, error) {
	e, text, err := d.checked(from, next)
	return e, text, refusal(err)
}

// CheckNote checks By or Why of a change, whose name is the field of the [shards.FieldError] that it returns.
func CheckNote(field, text string) error {
	if len(text) > MaxNote || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return &shards.FieldError{Field: field, Found: fmt.Sprintf("%d bytes", len(text)), Expected: fmt.Sprintf("text in UTF-8, %d bytes at most", MaxNote)}
	}
	return nil
}

func (d documents) checked(from Entry, next Change) (Entry, []byte, error) {
	if err := errors.Join(CheckNote("by", next.By), CheckNote("why", next.Why)); err != nil {
		return Entry{}, nil, err
	}
	c := next.Config
	c.Store = shards.Store{} // so that the document, put into a file, is a config that works
	if d.shared {
		c = c.Shared()
	}
	if from.version() > 0 {
		c.Version = from.version()
	}
	c.Version++
	if err := checkPasswords(c); err != nil {
		return Entry{}, nil, err
	}
	if d.shared {
		if err := CheckTrust(d.local.Store, c); err != nil {
			return Entry{}, nil, err
		}
	}
	text, err := c.YAML()
	if err != nil {
		return Entry{}, nil, err
	}
	// The document counts, not the hosts that the caller has expanded.
	free := d.keepUnset()
	free.local.Cluster = ""
	m, err := free.parse("the new map", c.Version, text)
	if err != nil {
		return Entry{}, nil, err
	}
	if from.Map != nil {
		if err := shards.CheckChange(from.Map, m); err != nil && !next.allows(err) {
			return Entry{}, nil, err
		}
	}
	if d.local.Cluster != "" && c.Cluster != d.local.Cluster {
		return Entry{}, nil, &shards.ChangeError{Field: "cluster", From: d.local.Cluster, To: c.Cluster, Why: "the store would hold the map of another cluster"}
	}
	return Entry{Map: m, By: next.By, Why: next.Why}, text, nil
}

// parse returns the map of a document that is stored as a version. Errors call the document name.
func (d documents) parse(name string, version int, text []byte) (*shards.Map, error) {
	return remember(d, name, version, text, func() (*shards.Map, error) { return d.read(name, version, text) })
}

func (d documents) read(name string, version int, text []byte) (*shards.Map, error) {
	c, err := d.config(name, text)
	if err != nil {
		return nil, err
	}
	if d.local.Cluster != "" && c.Cluster != d.local.Cluster {
		return nil, &shards.FieldError{
			File: name, Field: "cluster", Found: fmt.Sprintf("the map of another cluster, %q", c.Cluster), Expected: fmt.Sprintf("%q", d.local.Cluster),
		}
	}
	c.Version = version
	if d.shared {
		err := CheckTrust(d.local.Store, c)
		if err != nil && d.shows {
			c, err = shards.Parse(name, text, func(name string) (string, bool) { return "${" + name + "}", true })
			c.Version = version
		}
		if err != nil {
			return nil, located(err, name)
		}
	}
	local := d.local
	if !d.shared {
		local.Store, local.Migrations, local.PasswordCommand = c.Store, c.Migrations, c.PasswordCommand
	}
	return c.WithLocal(local).Map()
}

// config parses a document without expanding it.
func (d documents) config(name string, text []byte) (shards.Config, error) {
	return remember(d, name, -1, text, func() (shards.Config, error) { return shards.Parse(name, text, d.lookup) })
}

// located adds the name of the document to an error without one.
func located(err error, name string) error {
	if e := (*shards.FieldError)(nil); errors.As(err, &e) && e.File == "" {
		e.File = name
	}
	return err
}

// keepUnset returns documents that keep unset variables as they are written, and all variables of a map that needs more than
// it is trusted with: for callers that connect to no host.
func (d documents) keepUnset() documents {
	lookup := d.lookup
	d.shows = true
	d.lookup = func(name string) (string, bool) {
		if lookup != nil {
			if value, ok := lookup(name); ok {
				return value, true
			}
		}
		return "${" + name + "}", true
	}
	return d
}
