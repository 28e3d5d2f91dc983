package localpg_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// The first server runs initdb and the next ones copy what it made: they differ in nothing but the system identifier and the
// password, also after they were killed.
func TestInitdbAndCopies(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	cfg := localpg.Config{Source: localpg.Local, CacheDir: cache, Settings: map[string]string{"default_transaction_read_only": "on"}}
	var cluster, identifiers, passwords []string
	for range 3 {
		server := start(t, cfg)
		dsn := server.DSN("postgres")
		cluster = append(cluster, ask[string](t, dsn, `select json_build_array(
			(select json_agg(d order by datname) from pg_database d),
			(select json_agg(json_build_array(name, setting) order by name) from pg_settings where source = 'configuration file'),
			(select json_agg(json_build_array(type, database, user_name, address, auth_method)) from pg_hba_file_rules))::text`))
		const query = "select system_identifier::text from pg_control_system()"
		identifiers = append(identifiers, ask[string](t, dsn, query))
		passwords = append(passwords, ask[string](t, dsn, "select rolpassword from pg_authid where rolname = 'postgres'"))
		noError(t, server.Kill(t.Context()))
		noError(t, server.Restart(t.Context()))
		equal(t, "after a kill", ask[string](t, dsn, query), identifiers[len(identifiers)-1])
	}
	for i := range 2 {
		equal(t, "cluster", cluster[i+1], cluster[0])
		equal(t, "identifiers differ", identifiers[i] != identifiers[i+1] && identifiers[0] != identifiers[2], true)
		equal(t, "passwords differ", passwords[i] != passwords[i+1] && passwords[0] != passwords[2], true)
	}
	made, err := filepath.Glob(filepath.Join(cache, "initdb-*-*"))
	noError(t, err)
	equal(t, "templates", len(made), 1)
	info, err := os.Stat(made[0])
	noError(t, err)
	equal(t, "mode", info.Mode().Perm(), os.FileMode(0o700))
}

// A template that is damaged, or of another build, does no harm: initdb runs, and makes one that is whole.
func TestDamagedTemplate(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	cfg := localpg.Config{Source: localpg.Local, CacheDir: cache}
	noError(t, start(t, cfg).Stop(t.Context()))
	made, err := filepath.Glob(filepath.Join(cache, "initdb-*-*"))
	noError(t, err)
	equal(t, "templates", len(made), 1)
	noError(t, os.WriteFile(filepath.Join(made[0], "data", "global", "pg_control"), make([]byte, 8192), 0o600))
	other := made[0][:len(made[0])-1] + "_"
	killed := filepath.Join(cache, filepath.Base(made[0])[:len("initdb-0123456789abcdef")]+"-new-1")
	noError(t, os.Mkdir(other, 0o700))
	noError(t, os.Mkdir(killed, 0o700))
	noError(t, os.Chtimes(killed, time.Time{}, time.Now().Add(-2*time.Hour)))

	server := start(t, cfg)
	equal(t, "answer", ask[int](t, server.DSN("postgres"), "select 1"), 1)
	equal(t, "another build's", exists(other), false)
	equal(t, "a killed process's", exists(killed), false)
	control, err := os.ReadFile(filepath.Join(made[0], "data", "global", "pg_control"))
	noError(t, err)
	equal(t, "it is whole again", control[0]|control[1]|control[2]|control[3] != 0, true)
}
