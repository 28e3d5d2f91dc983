package shards

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// maxSize is the largest config file, in bytes.
const maxSize = 1 << 20

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
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
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
	d := &document{file: name, lookup: lookup, lines: map[string]int{}, anchors: map[string]*ast.AnchorNode{}, budget: maxValues}
	c, err := d.parse(data)
	if err != nil {
		return Config{}, d.locate(err)
	}
	if c.Store.isRemote() {
		c, err = d.bootstrap(c)
		return c, d.locate(err)
	}
	m, err := c.Map()
	if err != nil {
		return Config{}, d.locate(err)
	}
	return m.Config(), nil
}

// Locate returns an error about a field of a document with the name of its file and the field's line.
func Locate(name string, data []byte, err *FieldError) error {
	set := func(string) (string, bool) { return "x", true }
	d := &document{file: name, lookup: set, lines: map[string]int{}, anchors: map[string]*ast.AnchorNode{}, budget: maxValues}
	_, _ = d.parse(data) // as far as it goes
	return d.locate(err)
}

// locate adds the file and the line to an error: the line of its field, or of the nearest enclosing
// field in the document.
func (d *document) locate(err error) error {
	var e *FieldError
	if !errors.As(err, &e) {
		return err
	}
	e.File = d.file
	for at := e.Field; e.Line == 0; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
		e.Line = d.lines[at]
		if at == "" {
			e.Line = max(e.Line, 1)
		}
	}
	return e
}

// parse reads the document into a config, without checking the values.
func (d *document) parse(data []byte) (Config, error) {
	var c Config
	root, err := d.root(data)
	if err != nil || root == nil {
		return c, err
	}
	host := func(h *Host) read {
		dsn := func(to *string) read { return d.dsn(to, &h.expanded) }
		return d.mapping(
			field{"name", d.text(&h.Name, expectedName)},
			field{"dsn", dsn(&h.DSN)},
			field{"replicas", list(d, &h.Replicas, "a list of DSNs, or [] for none", dsn)},
			field{"weight", d.count(&h.Weight)},
			field{"closed", d.boolean(&h.Closed)},
			field{"capacity", d.count(&h.Capacity)},
		)
	}
	placement := func(p *Placement) read {
		return d.mapping(
			field{"shards", d.set(&p.Shards)},
			field{"host", d.text(&p.Host, "the name of a host")},
		)
	}
	generator := func(g *Generator) read {
		return d.mapping(
			field{"kind", d.text((*string)(&g.Kind), expectedKinds())},
			field{"names", list(d, &g.Names, "a list of names, such as [photo, account]", func(name *string) read {
				return d.text(name, expectedGeneratorName)
			})},
			field{"hosts", list(d, &g.Hosts, "a list of names of hosts", func(name *string) read {
				return d.text(name, "the name of a host")
			})},
			field{"of", d.count(&g.Of)},
			field{"from", d.large(&g.From)},
		)
	}
	config := d.mapping(
		field{"cluster", d.text(&c.Cluster, expectedName)},
		field{"version", d.count(&c.Version)},
		field{"shards", d.count(&c.Shards)},
		field{"schema_prefix", d.text(&c.SchemaPrefix, "what the schemas' names begin with, such as shard_")},
		field{"epoch", d.moment(&c.Epoch)},
		field{"layout", d.layout(&c.Layout)},
		field{"strategy", d.strategy(&c.Strategy)},
		field{"store", d.store(&c.Store)},
		field{"hosts", list(d, &c.Hosts, "a list of hosts", host)},
		field{"placement", list(d, &c.Placement, "a list of placements", placement)},
		field{"migrations", d.text(&c.Migrations, "a directory")},
		field{"search_path", list(d, &c.SearchPath, "a list of schemas, or [] for none", func(schema *string) read {
			return d.text(schema, "the name of a schema")
		})},
		field{"shared", list(d, &c.SharedSchemas, "a list of schemas, or [] for none", func(schema *string) read {
			return d.text(schema, "the name of a schema")
		})},
		field{"extensions", list(d, &c.Extensions, "a list of extensions, or [] for none", d.extension)},
		field{"generators", list(d, &c.Generators, "a list of generators", generator)},
		field{"types", list(d, &c.Types, "a list of types of objects", func(t *ObjectType) read {
			return d.mapping(field{"name", d.text(&t.Name, expectedGeneratorName)}, field{"number", d.number(&t.Number, 0)})
		})},
		field{"password_command", list(d, &c.PasswordCommand, "a program and its arguments, such as [./token, \"5432\"]", func(word *string) read {
			return d.text(word, "a word of the command")
		})},
	)
	err = config("", root)
	return c, err
}
