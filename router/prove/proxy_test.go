package prove_test

import (
	"net/url"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// startProxy puts a network that can be made a bad one before a server, and returns the DSN that goes through it.
func startProxy(t *testing.T, server *localpg.Server) (proxy *toxiproxy.Proxy, dsn string) {
	t.Helper()
	to := address(t, server)
	proxy = toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), to, "127.0.0.1:0", to)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	u, err := url.Parse(server.DSN(database))
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	u.Host = proxy.Listen
	return proxy, u.String()
}
