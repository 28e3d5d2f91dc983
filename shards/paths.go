package shards

import (
	"path/filepath"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// fileKeys are the settings of a DSN that name files.
var fileKeys = []string{"sslrootcert", "sslcert", "sslkey", "passfile", "servicefile"}

// besideConfig makes the relative file names in a DSN absolute, resolved in dir, the directory of its config. If dir is
// empty they stay relative. The rest of the DSN does not change.
func besideConfig(text, dir string) string {
	d, err := dsn.Parse(text)
	if dir == "" || err != nil {
		return text
	}
	for _, key := range fileKeys {
		if name := d.Get(key); name != "" && !filepath.IsAbs(name) && (key != "sslrootcert" || name != "system") {
			d.Set(key, filepath.Join(dir, name))
		}
	}
	return d.String()
}
