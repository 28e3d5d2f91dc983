package shards

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
	"github.com/kiloshard/kiloshard/shards/internal/configtext"
	"github.com/kiloshard/kiloshard/shards/internal/connstring"
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
// If store.kind is postgres or etcd, the map is in that store, and the document only says how to find it: cluster,
// store, migrations and password_command. Parse then refuses fields of the map. See [Config.Remote].
//
// ${NAME} in hosts[].dsn, hosts[].direct, hosts[].replicas, store.dsn and store.password, and nowhere else, is replaced by the value
// that lookup returns, which is [os.LookupEnv] in most programs; for a nil lookup no variable is set. In the user and
// password of a postgres:// or postgresql:// URL the value is percent-encoded, so the variable holds the password as
// it is; elsewhere it is inserted as it is. $$, and a $ without a { after it, stay as they are. [Host.ConnString] and
// [Store.ConnString] return the result, while the DSN itself stays as written. They call lookup again each time, so
// that a password can change while a program runs: lookup must be safe for concurrent use.
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
		err = c.fillVariables(lookup)
	}
	if err == nil && c.Store.isRemote() {
		c, err = c.remote(lines)
	} else if err == nil {
		c, err = c.checked()
	}
	if err != nil {
		return Config{}, located(name, lines, err)
	}
	return c, nil
}

// fillVariables fills in the variables of the DSNs and of the store's password.
func (c *Config) fillVariables(lookup func(name string) (string, bool)) error {
	add := func(to *connstring.Variables, field, text string) error {
		if fault := to.Add(text, lookup); fault != nil {
			return &FieldError{Field: field, Found: fault.Found, Expected: cmp.Or(fault.Expected, configtext.Expected(field))}
		}
		return nil
	}
	s := &c.Store
	if err := cmp.Or(add(&s.variables, "store.dsn", s.DSN), add(&s.variables, "store.password", s.Password)); err != nil {
		return err
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		at := fmt.Sprintf("hosts[%d].", i)
		if err := cmp.Or(add(&h.variables, at+"dsn", h.DSN), add(&h.variables, at+"direct", h.Direct)); err != nil {
			return err
		}
		for k, dsn := range h.Replicas {
			if err := add(&h.variables, fmt.Sprintf("%sreplicas[%d]", at, k), dsn); err != nil {
				return err
			}
		}
	}
	return nil
}

// checked returns the config of a map with its defaults filled in.
func (c Config) checked() (Config, error) {
	m, err := c.Map()
	if err != nil {
		return Config{}, err
	}
	return m.Config(), nil
}

// remote returns the config of a map that is in a store, with its defaults filled in. lines are those of its document.
func (c Config) remote(lines configfile.Lines) (Config, error) {
	if err := c.Store.checkKind(); err != nil {
		return Config{}, err
	}
	var others []string // of the map
	for name, line := range lines {
		if line > 0 && name != "" && !strings.ContainsAny(name, ".[") && !slices.Contains(remoteFieldNames, name) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		first := slices.MinFunc(others, func(a, b string) int {
			return cmp.Or(cmp.Compare(lines[a], lines[b]), cmp.Compare(a, b))
		})
		return Config{}, &FieldError{
			Field: first, Found: "a part of the map, which is in the store (" + c.Store.Kind + ")",
			Expected: strings.Join(remoteFieldNames, ", ") + " alone; kiloshard map edit changes the map, kiloshard map import copies one to the store",
		}
	}
	c.Store = c.Store.withDefaults()
	return c, c.checkRemote()
}

// Locate adds to an error about a field of a document the name of its file and the field's line.
func Locate(name string, data []byte, err *FieldError) error {
	lines, _ := format.Decode(data, &Config{}) // an error in the YAML leaves the lines before it
	return located(name, lines, err)
}
