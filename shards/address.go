package shards

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// addressPattern is one or more of host or host:port, with commas between them, as in a URL.
var addressPattern = regexp.MustCompile(`^[A-Za-z0-9._-]+(:[0-9]+)?(,[A-Za-z0-9._-]+(:[0-9]+)?)*$|^\[[0-9A-Fa-f:.]+\](:[0-9]+)?$`)

// onePattern is one host: a name, an IP, or the directory of a Unix socket.
var onePattern = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+|/[A-Za-z0-9._/-]*|[0-9A-Fa-f:.]+)$`)

var (
	portPattern     = regexp.MustCompile(`^[0-9]*$`)
	databasePattern = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)
)

// Address returns host, port and database of the primary for people to read, never a user or a password: 10.0.0.1:5432/app,
// and with a Unix socket its directory, /run/postgresql:5432/app. Of a DSN that names a service it is service:NAME. It is
// empty for a DSN that names none of them or could be misread.
func (h Host) Address() string {
	dsn := h.ConnString()
	if isURL(dsn) {
		return urlAddress(dsn)
	}
	values, ok := keywords(dsn)
	if !ok {
		return ""
	}
	return keywordAddress(values)
}

func urlAddress(dsn string) string {
	_, rest, _ := strings.Cut(dsn, "://")
	authority, path := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority, path = rest[:end], rest[end:]
	}
	address := authority[strings.LastIndexByte(authority, '@')+1:]
	// An unescaped slash in a password puts the @ after the authority.
	if strings.ContainsRune(path, '@') {
		return ""
	}
	query := ""
	if end := strings.IndexAny(path, "?#"); end >= 0 {
		path, query = path[:end], path[end:]
	}
	values, err := url.ParseQuery(strings.TrimPrefix(query, "?"))
	if err == nil && (values.Has("host") || values.Has("service") && address == "") { // these count, not the authority's
		return keywordAddress(map[string]string{
			"host": values.Get("host"), "port": values.Get("port"), "service": values.Get("service"), "dbname": strings.TrimPrefix(path, "/"),
		})
	}
	if strings.Contains(address, "%") { // the directory of a socket
		escaped, port, _ := strings.Cut(address, ":")
		if directory, err := url.PathUnescape(escaped); err == nil && filepath.IsAbs(directory) {
			return keywordAddress(map[string]string{"host": directory, "port": port, "dbname": strings.TrimPrefix(path, "/")})
		}
	}
	if !addressPattern.MatchString(address) {
		return ""
	}
	return address + path
}

// keywordAddress returns the address that the keywords of a DSN name.
func keywordAddress(values map[string]string) string {
	database := values["dbname"]
	if database == "" {
		database = values["database"]
	}
	if database != "" {
		if !databasePattern.MatchString(database) {
			return ""
		}
		database = "/" + database
	}
	if values["host"] == "" {
		if service := values["service"]; service != "" && databasePattern.MatchString(service) {
			return "service:" + service + database
		}
		return ""
	}
	hosts, ports := strings.Split(values["host"], ","), strings.Split(values["port"], ",")
	for i, host := range hosts {
		port := ports[min(i, len(ports)-1)]
		if !onePattern.MatchString(host) || !portPattern.MatchString(port) {
			return ""
		}
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if port != "" {
			host += ":" + port
		}
		hosts[i] = host
	}
	return strings.Join(hosts, ",") + database
}
