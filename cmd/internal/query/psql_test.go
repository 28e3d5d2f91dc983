package query

import (
	"os"
	"path/filepath"
	"testing"
)

// An older psql would send any server the password as clear text.
func TestKeepsPassword(t *testing.T) {
	for _, test := range []struct {
		version     string
		environment []string
		keeps       bool
	}{
		{"15.18 (Debian 15.18-0+deb12u1)", []string{"PGHOST=10.0.0.1", "PGPASSWORD=x", "PGREQUIREAUTH=!password"}, false},
		{"15.18", []string{"PGHOST=10.0.0.1", "PGREQUIREAUTH=scram-sha-256", "PGPASSWORD=x"}, false},
		{"9.6.24", []string{"PGHOST=10.0.0.1", "PGPASSWORD=x", "PGREQUIREAUTH=!password"}, false},
		{"15.18", []string{"PGHOST=10.0.0.1", "PGPASSWORD=x", "PGREQUIREAUTH="}, true},
		{"15.18", []string{"PGHOST=10.0.0.1", "PGPASSWORD=x", "PGREQUIREAUTH=none,password"}, true},
		{"15.18", []string{"PGHOST=/run/postgresql", "PGPASSWORD=x", "PGREQUIREAUTH=!password"}, true},
		{"15.18", []string{"PGHOST=10.0.0.1", "PGREQUIREAUTH=!password"}, true},
		{"16.2", []string{"PGHOST=10.0.0.1", "PGPASSWORD=x", "PGREQUIREAUTH=!password"}, true},
		{"18devel", []string{"PGHOST=10.0.0.1", "PGPASSWORD=x", "PGREQUIREAUTH=!password"}, true},
	} {
		t.Run(test.version, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "psql"), []byte("#!/bin/sh\necho 'psql (PostgreSQL) "+test.version+"'\n"), 0o700); err != nil { //nolint:gosec // it is run
				t.Fatal(err)
			}
			t.Setenv("PATH", dir)
			if err := keepsPassword(test.environment); (err == nil) != test.keeps {
				t.Errorf("%v: got %v", test.environment, err)
			}
		})
	}
}
