package migrate_test

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

// What an extension has that the config does not name is looked for, so that the error says what to do.
func TestTypesOfExtensions(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1)
	b.execHost(b.m.Host(0), `create extension citext schema public; create schema ext; create extension "uuid-ossp" schema ext`)
	for _, test := range []struct{ name, sql, want string }{
		{"a type", "create table a (id int);\ncreate table u (email citext)", `line 2: type "citext" does not exist (SQLSTATE 42704); hint: extension citext has it, in schema public: put "extensions: [citext]" into the config; in:`},
		{"a function", "create table u (id uuid default uuid_generate_v4())", `hint: extension uuid-ossp has it, in schema ext: put "extensions: [{name: uuid-ossp, schema: ext}]" into the config; in:`},
		{"an extension that is not made", "create table u (tags hstore)", `hint: for extension hstore put "extensions: [hstore]" into the config, and run kiloshard create; in:`},
		{"outside a transaction", "---- tern: disable-tx ----\ncreate table u (email citext)", `hint: extension citext has it, in schema public`},
		{"a type of nobody", "create table u (tags none_such)", `type "none_such" does not exist (SQLSTATE 42704); in: `},
		{"a function of nobody", "select none_such()", `hint: No function matches`},
		{"a schema", "create table u (tags ext.citext)", `type "ext.citext" does not exist (SQLSTATE 42704); in: `},
	} {
		b.cfg.Files = files("001_a.sql", test.sql)
		_, partial := b.upFails()
		if text := partial.Error(); !strings.Contains(text, test.want) {
			t.Errorf("%s: got error %s, want %s", test.name, text, test.want)
		}
	}
	c := b.m.Config()
	c.Extensions = []shards.Extension{{Name: "citext"}}
	b.share(c)
	b.cfg.Files = files("001_a.sql", "create table u (email citext)")
	b.up()
}
