package shards

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// fileKeys are the settings of a DSN that name files.
var fileKeys = []string{"sslrootcert", "sslcert", "sslkey", "passfile", "servicefile"}

// besideConfig makes the relative file names in a DSN absolute, resolved in dir, the directory of its config. If dir is
// empty they stay relative. The rest of the DSN does not change.
func besideConfig(dsn, dir string) string {
	switch {
	case dir == "":
		return dsn
	case isURL(dsn):
		return urlBeside(dsn, dir)
	}
	return keywordsBeside(dsn, dir)
}

// fileBeside returns the absolute name of a file, and false if the name must stay as it is.
func fileBeside(key, name, dir string) (string, bool) {
	if !slices.Contains(fileKeys, key) || name == "" || filepath.IsAbs(name) || key == "sslrootcert" && name == "system" {
		return "", false
	}
	return filepath.Join(dir, name), true
}

func urlBeside(dsn, dir string) string {
	at := strings.Index(dsn, "://") + len("://")
	if end := strings.IndexAny(dsn[at:], "@/"); end >= 0 && dsn[at+end] == '@' {
		at += end // a password may have a ? in it
	}
	query := strings.IndexByte(dsn[at:], '?')
	if query < 0 {
		return dsn
	}
	at += query + 1
	pairs := strings.Split(dsn[at:], "&")
	for i, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		name, err := url.PathUnescape(value)
		if err != nil {
			continue // the parser of DSNs will report it
		}
		if path, ok := fileBeside(key, name, dir); ok {
			pairs[i] = key + "=" + url.PathEscape(path)
		}
	}
	return dsn[:at] + strings.Join(pairs, "&")
}

// keywordsBeside appends the absolute names: the last of two equal keywords counts.
func keywordsBeside(dsn, dir string) string {
	files, ok := keywords(dsn)
	if !ok {
		return dsn
	}
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	for _, key := range fileKeys {
		if path, ok := fileBeside(key, files[key], dir); ok {
			dsn += " " + key + "='" + quote.Replace(path) + "'"
		}
	}
	return dsn
}

// keywords returns the keywords of a DSN that is not a URL, with their values, and false if it cannot be read.
func keywords(dsn string) (map[string]string, bool) {
	values := map[string]string{}
	for rest := strings.TrimLeft(dsn, " \t\r\n"); rest != ""; {
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			return nil, false
		}
		key = strings.TrimSpace(key)
		value, rest = nextValue(strings.TrimLeft(value, " \t\r\n"))
		values[key] = value
	}
	return values, true
}

// nextValue splits off a value, with or without quotes, from the text after a keyword and its equals sign.
func nextValue(text string) (value, rest string) {
	var b strings.Builder
	quoted := strings.HasPrefix(text, "'")
	i := 0
	if quoted {
		i = 1
	}
	for ; i < len(text); i++ {
		c := text[i]
		if quoted && c == '\'' || !quoted && strings.IndexByte(" \t\r\n", c) >= 0 {
			i++
			break
		}
		if c == '\\' && i+1 < len(text) {
			i++
			c = text[i]
		}
		b.WriteByte(c)
	}
	return b.String(), strings.TrimLeft(text[i:], " \t\r\n")
}
