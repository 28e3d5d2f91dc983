package connstring

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

// Address returns the host, port and database of a DSN, never a user or a password: 10.0.0.1:5432/app, for a Unix
// socket its directory, /run/postgresql:5432/app, and for a service service:NAME. It is empty for a DSN that names
// none of them or could be misread.
func Address(text string) string {
	d, err := dsn.Parse(text)
	// If a password has a / or @ that is not escaped, its end stands where the address belongs, before another @.
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
