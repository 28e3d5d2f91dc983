package shards

import (
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// place is one of the addresses that a DSN names.
type place struct {
	host string // a name, an IP, or the directory of a Unix socket
	port uint16
}

// At returns the host as if its DSN named only this address, for credentials that are valid for one address. address is
// a name, an IP, or the directory of a Unix socket.
func (h Host) At(address string, port uint16) Host {
	h.at = &place{address, port}
	return h
}

// in returns the DSN with this address instead of its own.
func (p *place) in(dsn string) string {
	if p == nil {
		return dsn
	}
	port := strconv.Itoa(int(p.port))
	if !isURL(dsn) { // the last of two equal keywords counts
		quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
		return dsn + " host='" + quote.Replace(p.host) + "' port='" + port + "'"
	}
	begin := strings.Index(dsn, "://") + len("://")
	end := begin + len(dsn[begin:])
	if i := strings.IndexAny(dsn[begin:], "/?#"); i >= 0 {
		end = begin + i
	}
	userinfo := dsn[begin : max(begin-1, endOfUserinfo(dsn))+1]
	rest, query, found := strings.Cut(dsn[end:], "?")
	if found {
		pairs := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
			key, _, _ := strings.Cut(pair, "=")
			name, err := url.QueryUnescape(key)
			return err == nil && (name == "host" || name == "port" || name == "hostaddr")
		})
		rest += "?" + strings.Join(pairs, "&")
	}
	host := p.host
	if filepath.IsAbs(host) {
		return dsn[:begin] + userinfo + url.PathEscape(host) + ":" + port + rest
	}
	return dsn[:begin] + userinfo + net.JoinHostPort(host, port) + rest
}
