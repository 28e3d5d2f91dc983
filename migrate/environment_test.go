package migrate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestTemplatesDoNotReadTheEnvironment, unless that is switched on.
func TestTemplatesDoNotReadTheEnvironment(t *testing.T) {
	m, err := shardtest.MapConfig(1, shardtest.Hosts(t, 1)).Map()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KILOSHARD_TEST_SECRET", "hunter2")
	for _, text := range []string{
		`select '{{env "KILOSHARD_TEST_SECRET"}}'`,
		`select '{{ "}}" }}{{with $x := "a"}}{{if true}}{{range (list 1)}}{{ printf "%s" (env "KILOSHARD_TEST_SECRET") }}{{end}}{{end}}{{end}}'`,
		`select '{{ "$KILOSHARD_TEST_SECRET" | expandenv }}'`,
		`select '{{getHostByName "localhost"}}'`,
		`select 1 {{/* x */}} {{define "x"}}{{env "KILOSHARD_TEST_SECRET"}}{{end}} {{template "x" .}}`,
		"{{define \"x\"}}a{{end}} select '{{env \"KILOSHARD_TEST_SECRET\"}}';\n---- create above / drop below ----\n{{define \"x\"}}b{{end}} select 2", // one name in both parts
		"select 1;\n---- create above / drop below ----\nselect '{{env \"KILOSHARD_TEST_SECRET\"}}'",
		`select '{{template "sub/x.sql"}}'`,
		`select '{{install_snapshot "y"}}'`,
	} {
		defined := `{{define "sub/x.sql"}}{{env "KILOSHARD_TEST_SECRET"}}{{end}}` // a template of its own file's name
		cfg := migrate.Config{Map: m, Files: files("001_users.sql", text)}
		if strings.Contains(text, "sub/x.sql") {
			cfg.Files = files("001_users.sql", text, "sub/x.sql", defined)
		}
		if strings.Contains(text, "install_snapshot") {
			cfg.Files = files("001_users.sql", text, "snapshots/y/install.sql", `{{expandenv "$KILOSHARD_TEST_SECRET"}}`)
		}
		_, err := migrate.Status(t.Context(), cfg)
		var file *migrate.FileError
		if !errors.As(err, &file) || !strings.Contains(err.Error(), "its template calls ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", text, err)
		}
		cfg.TemplateEnv = true
		if _, err := migrate.Status(t.Context(), cfg); errors.As(err, &file) {
			t.Errorf("%s: got %v although it is switched on", text, err)
		}
	}
}
