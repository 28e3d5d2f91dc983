package connstring

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// fileKeys are the settings of a DSN that name files.
var fileKeys = []string{"sslrootcert", "sslcert", "sslkey", "passfile", "servicefile"}

// Localize returns a DSN with the given settings in place of its own, and with relative file names resolved in dir, the
// directory of its config. Without a dir they stay relative. A DSN that cannot be parsed stays as it is.
func Localize(text string, settings map[string]string, dir string) string {
	d, err := dsn.Parse(text)
	if err != nil {
		return text
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		d.Set(key, settings[key])
	}
	for _, key := range fileKeys {
		name := d.Get(key)
		if dir != "" && name != "" && !filepath.IsAbs(name) && (key != "sslrootcert" || name != "system") {
			d.Set(key, filepath.Join(dir, name))
		}
	}
	return d.String()
}
