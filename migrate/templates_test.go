package migrate_test

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
)

// Plan names templates by which shards get other texts than their author meant, and no others.
func TestTemplateRisks(t *testing.T) {
	t.Parallel()
	b := setup(t, 20, 1)
	for _, test := range []struct{ name, file, want string }{
		{"names and numbers", "create table {{.schema}}.t (shard int default {{.shard}}, a int default 0, b int default 19, c text default '19.0 shard_00000'); -- {{printf \"%04d\" .shard | len}}", ""},
		{"braces", `select '{{"{{"}}1}}'`, ""},
		{"random", "select 1,\n'{{uuidv4}}'", "template-varies 0: '"},
		{"the clock", "select 1,\n'{{now | date \"2006\"}}'", "template-varies 2: now"},
		{"one shard only", "select 1;\n{{if eq .shard 0}}create table zero ();{{end}}", "template-by-shard 0: shard 19: nothing, shard 0: create table zero ();"},
		{"arithmetic", "select {{mod .shard 4}}", "template-by-shard 0: shard 19: select 3, shard 0: select 0"},
		{"an array of one", "select '{{1}}'::int[], '{{\"a\"}}'", "template-constant 1: {{1}}; template-constant 1: {{\"a\"}}"},
		{"no template", "select 'now', '{1}'", ""},
	} {
		b.cfg.Files = files("001_a.sql", test.file)
		plan, err := migrate.Plan(t.Context(), b.cfg)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range plan.Templates {
			equal(t, test.name+": file", r.File, "001_a.sql")
			got = append(got, string(r.Kind)+" "+string(rune('0'+r.Line))+": "+r.Text)
		}
		if text := strings.Join(got, "; "); (test.want == "") != (text == "") || !strings.HasPrefix(text, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, text, test.want)
		}
	}
}
