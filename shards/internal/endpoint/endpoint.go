package endpoint

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

var pattern = regexp.MustCompile(`^(https?://)([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?$`)

// Valid reports whether an endpoint is the URL of a server: http or https, a host, a port if it has one, and nothing
// else.
func Valid(endpoint string) bool { return pattern.MatchString(endpoint) }

// UsesTLS reports whether connections to an endpoint use TLS.
func UsesTLS(endpoint string) bool { return strings.HasPrefix(endpoint, "https://") }

// Loopback reports whether an endpoint is on this machine. It resolves no name but localhost.
func Loopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}
