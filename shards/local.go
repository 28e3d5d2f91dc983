package shards

import (
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// LocalKeys are the settings that [Store.Local] may have. A DSN from a store may have none of them but sslmode: they name
// files of this machine, or say what a server may ask for.
var LocalKeys = []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "passfile", "service", "servicefile", "require_auth"}

// local reads settings for DSNs.
func (d *document) local(to *map[string]string) read {
	return func(at string, node ast.Node) error {
		values := make([]string, len(LocalKeys))
		fields := make([]field, len(LocalKeys))
		for i, key := range LocalKeys {
			fields[i] = field{key, d.text(&values[i], "what "+key+" is in a DSN")}
		}
		if err := d.mapping(fields...)(at, node); err != nil {
			return err
		}
		*to = map[string]string{}
		for i, key := range LocalKeys {
			if values[i] != "" {
				(*to)[key] = values[i]
			}
		}
		return nil
	}
}

// withLocal returns a DSN with settings that override its own.
func withLocal(dsn string, local map[string]string) string {
	keys := slices.Sorted(maps.Keys(local))
	if len(keys) == 0 {
		return dsn
	}
	if !isURL(dsn) { // the last of two equal keywords counts
		quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
		for _, key := range keys {
			dsn += " " + key + "='" + quote.Replace(local[key]) + "'"
		}
		return dsn
	}
	at := max(0, endOfUserinfo(dsn))
	head, query := dsn, ""
	if i := strings.IndexByte(dsn[at:], '?'); i >= 0 {
		head, query = dsn[:at+i], dsn[at+i+1:]
	}
	pairs := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		key, _, _ := strings.Cut(pair, "=")
		_, ok := local[key]
		return ok || pair == ""
	})
	for _, key := range keys {
		pairs = append(pairs, key+"="+url.QueryEscape(local[key]))
	}
	return head + "?" + strings.Join(pairs, "&")
}

// Passfile returns the password file that the DSN of the primary names, empty if it names none.
func (h Host) Passfile() string {
	dsn := h.ConnString()
	if isURL(dsn) {
		u, err := url.Parse(dsn)
		if err != nil {
			return ""
		}
		return u.Query().Get("passfile")
	}
	var file string
	for rest := strings.TrimLeft(dsn, " \t\r\n"); rest != ""; {
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			return file
		}
		value, rest = nextValue(strings.TrimLeft(value, " \t\r\n"))
		if strings.TrimSpace(key) == "passfile" {
			file = value
		}
	}
	return file
}

// WithPassfile returns the host with another password file.
func (h Host) WithPassfile(file string) Host {
	h.local = maps.Clone(h.local)
	if h.local == nil {
		h.local = map[string]string{}
	}
	h.local["passfile"] = file
	return h
}

// IsShared reports whether the host came from a store that others may write to: see [Store.Variables].
func (h Host) IsShared() bool { return h.shared }

// LocalService returns a host that connects only by the service that this machine names, in [Store.Local] or in PGSERVICE.
// It returns false for a host that is not from a store: its DSN may name any service.
func (h Host) LocalService() (Host, bool) {
	local := map[string]string{"passfile": os.DevNull}
	for _, key := range []string{"service", "servicefile"} {
		if value, ok := h.local[key]; ok {
			local[key] = value
		}
	}
	return Host{Name: h.Name, DSN: " ", dir: h.dir, local: local}, h.shared
}
