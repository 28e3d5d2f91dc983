// Package settings merges settings of servers and writes them to postgresql.conf.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

var validName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// Merge returns the defaults with the caller's settings over them. All names are in lower case. It refuses the reserved
// settings, and names and values that a line of a configuration file cannot hold; kind says in its error what settings these are.
func Merge(defaults, callers map[string]string, reserved []string, kind string) (map[string]string, error) {
	merged := maps.Clone(defaults)
	for name, value := range callers {
		lower := strings.ToLower(name)
		switch {
		case !validName.MatchString(name):
			return nil, fmt.Errorf("setting %q: not the name of a %s", name, kind)
		case slices.Contains(reserved, lower):
			return nil, fmt.Errorf("setting %s: chosen by localpg", name)
		case strings.ContainsAny(value, "\r\n\x00"):
			return nil, fmt.Errorf("setting %s: the value has more than one line", name)
		}
		merged[lower] = value
	}
	return merged, nil
}

// Append adds settings to a postgresql.conf. If a setting occurs twice in the file, Postgres takes the last one.
func Append(path string, settings map[string]string) error {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `''`)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, quote.Replace(settings[name]))
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text.String())
	return errors.Join(err, f.Close())
}
