package shards

import (
	"regexp"
	"strings"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// hostPattern is one host: a name, an IP, or the directory of a Unix socket.
var hostPattern = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+|/[A-Za-z0-9._/-]*|[0-9A-Fa-f:.]+)$`)

var (
	portPattern     = regexp.MustCompile(`^[0-9]*$`)
	databasePattern = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)
)

// Address returns host, port and database of the primary for people to read, never a user or a password: 10.0.0.1:5432/app,
// and with a Unix socket its directory, /run/postgresql:5432/app. Of a DSN that names a service it is service:NAME. It is
// empty for a DSN that names none of them or could be misread.
func (h Host) Address() string {
	text := h.ConnString()
	d, err := dsn.Parse(text)
	// With a / or @ in a password that is not escaped, a part of it is where the address belongs, before another @.
	if err != nil || d.IsURL() && strings.ContainsRune(text[dsn.Userinfo(text)+1:], '@') {
		return ""
	}
	database := d.Get("dbname")
	if !databasePattern.MatchString(database) {
		return ""
	}
	if database != "" {
		database = "/" + database
	}
	if d.Get("host") == "" {
		if service := d.Get("service"); service != "" && databasePattern.MatchString(service) {
			return "service:" + service + database
		}
		return ""
	}
	hosts, ports := strings.Split(d.Get("host"), ","), strings.Split(d.Get("port"), ",")
	for i, host := range hosts {
		port := ports[min(i, len(ports)-1)]
		if !hostPattern.MatchString(host) || !portPattern.MatchString(port) {
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
