package shards

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
)

// Load reads a config file as [Parse] does. Relative file names are resolved in the file's directory: that of
// [Config.MigrationsDir], and in DSNs, the store's too, sslrootcert, sslcert, sslkey, passfile and
// servicefile. If the file cannot be read the error is an [os.PathError].
func Load(path string, lookup func(name string) (value string, ok bool)) (Config, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return Config{}, fmt.Errorf("directory of %s: %w", path, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return Config{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, configfile.MaxSize+1))
	if err != nil {
		return Config{}, err
	}
	c, err := Parse(path, data, lookup)
	c.dir, c.Store.dir = dir, dir
	for i := range c.Hosts {
		c.Hosts[i].dir = dir
	}
	return c, err
}

// Parse reads a config from YAML of at most 1 MiB, checks it as [Config.Map] does, and returns it
// with its defaults filled in. Errors give name as the name of the file.
//
// If store.kind is postgres or etcd, the map is in that store, and the document only says how to find it: cluster, store,
// migrations and password_command. Parse then refuses fields of the map. See [Config.Remote].
//
// ${NAME} in hosts[].dsn, hosts[].replicas, store.dsn and store.password, and nowhere else, is replaced by the value that
// lookup returns, which is [os.LookupEnv] in most programs; for a nil lookup no variable is set. In the user and password of
// a postgres:// or postgresql:// URL the value is percent-encoded, so the variable holds the
// password as it is; elsewhere it is inserted as it is. $$, and a $ without a { after it, stay as they
// are. [Host.ConnString] and [Store.ConnString] return the result, while the DSN itself stays as written. They call lookup
// again each time, so that a password can change while a program runs: lookup must be safe for concurrent use.
//
// The error is a [FieldError] with the line: for broken YAML, several documents, an unknown or
// repeated field, a wrong type or value, and a variable that is not set. It never shows a DSN.
func Parse(name string, data []byte, lookup func(name string) (value string, ok bool)) (Config, error) {
	var c Config
	lines, err := format.Decode(data, &c)
	if err == nil && lines["layout.shard"] > 0 {
		err = c.Layout.Validate() // before the defaults: it may have nothing but zeros
	}
	if err == nil {
		err = c.expand(lookup)
	}
	if err == nil {
		c, err = c.checked(lines)
	}
	if err != nil {
		return Config{}, located(name, lines, err)
	}
	return c, nil
}

// checked returns the config of a document with its defaults.
func (c Config) checked(lines configfile.Lines) (Config, error) {
	if c.Store.isRemote() {
		return c.bootstrap(lines)
	}
	m, err := c.Map()
	if err != nil {
		return Config{}, err
	}
	return m.Config(), nil
}

// Locate returns an error about a field of a document with the name of its file and the field's line.
func Locate(name string, data []byte, err *FieldError) error {
	lines, _ := format.Decode(data, &Config{}) // as far as it goes
	return located(name, lines, err)
}

// located adds the file and the line to an error: the line of its field, or of the nearest enclosing
// field in the document.
func located(name string, lines configfile.Lines, err error) error {
	var e *FieldError
	if broken := (*configfile.Error)(nil); errors.As(err, &broken) {
		e = &FieldError{Line: broken.Line, Field: broken.Field, Found: broken.Found, Expected: broken.Expected}
		if cause := (*FieldError)(nil); errors.As(broken.Err, &cause) {
			e.Found, e.Expected = cause.Found, cause.Expected
		}
	} else if !errors.As(err, &e) {
		return err
	}
	e.File = name
	if e.Line == 0 {
		e.Line = lines.Of(e.Field)
	}
	return e
}
