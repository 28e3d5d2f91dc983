package connect

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards"
)

// checkPassfile returns an [Error] if the password of a config comes from a file which others may read or write. Libpq
// ignores such a file, and reports it in these words.
func checkPassfile(host shards.Host, config *pgxpool.Config) error {
	file := passfileOf(host)
	info, err := os.Stat(file)
	if file == "" || err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 || runtime.GOOS == "windows" || config.ConnConfig.Password == "" {
		return nil //nolint:nilerr // the password cannot come from this file
	}
	without, err := pgxpool.ParseConfig(dsn.With(host.ConnString(), "passfile", os.DevNull))
	if err == nil && without.ConnConfig.Password == config.ConnConfig.Password {
		return nil // it comes from elsewhere
	}
	text := fmt.Sprintf("password file %q has group or world access; permissions should be u=rw (0600) or less", file)
	return &Error{text: text, Err: os.ErrPermission}
}

// passfileOf returns the password file of a host.
func passfileOf(host shards.Host) string {
	d, _ := dsn.Parse(host.ConnString())
	if file := d.Get("passfile"); file != "" {
		return file
	}
	if file := os.Getenv("PGPASSFILE"); file != "" { //nolint:forbidigo // pgx reads it as well
		return file
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".pgpass")
}
