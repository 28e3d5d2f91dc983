package prove_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// link is a network that leads to a server and that can be cut.
type link struct {
	t     *testing.T
	proxy *toxiproxy.Proxy
	dsn   string // that goes through it
	ills  []string
}

func newLink(t *testing.T, dsn string) *link {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	proxy := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), u.Host, "127.0.0.1:0", u.Host)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	u.Host = proxy.Listen
	return &link{t: t, proxy: proxy, dsn: u.String()}
}

func (l *link) port() string { return l.proxy.Listen[strings.LastIndex(l.proxy.Listen, ":")+1:] }

// cut ends all connections and those to come; it keeps the port, which another process could take else. hush lets nothing
// pass and says nothing.
func (l *link) cut()  { l.poison("reset_peer") }
func (l *link) hush() { l.poison("timeout") }

func (l *link) poison(kind string) {
	l.t.Helper()
	for _, stream := range []string{"upstream", "downstream"} {
		name := kind + " " + stream
		toxic := fmt.Sprintf(`{"name": %q, "stream": %q, "type": %q, "attributes": {"timeout": 0}}`, name, stream, kind)
		if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			l.t.Error(err)
		}
		l.ills = append(l.ills, name)
	}
}

// heal has the network work again. What was silent has lost bytes: those connections end.
func (l *link) heal() {
	l.t.Helper()
	for _, name := range l.ills {
		if err := l.proxy.Toxics.RemoveToxic(l.t.Context(), name); err != nil {
			l.t.Error(err)
		}
	}
	l.ills = nil
}
