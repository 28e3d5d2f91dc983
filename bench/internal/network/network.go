package network

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/shards"
)

// Network delays the traffic between this program and the hosts. A nil Network adds no delay.
type Network struct {
	proxies []*toxiproxy.Proxy // one for each host, in the order of the map
}

// Open opens a network with a delay each way.
func Open(all []shards.Host, delay time.Duration) (*Network, error) {
	proxies := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n := &Network{}
	for _, host := range all {
		cfg, err := pgx.ParseConfig(host.ConnString())
		if err != nil {
			n.Close()
			return nil, err
		}
		if strings.HasPrefix(cfg.Host, "/") {
			n.Close()
			return nil, fmt.Errorf("host %s uses a Unix socket: expected TCP, which can be delayed", host.Name)
		}
		upstream := net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port))
		proxy := toxiproxy.NewProxy(proxies, host.Name, "127.0.0.1:0", upstream)
		if err := proxy.Start(); err != nil {
			n.Close()
			return nil, fmt.Errorf("proxy to host %s: %w", host.Name, err)
		}
		n.proxies = append(n.proxies, proxy)
		for _, direction := range []string{"upstream", "downstream"} {
			toxic := toxicOf(delay, direction)
			if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
				n.Close()
				return nil, fmt.Errorf("proxy to host %s: %w", host.Name, err)
			}
		}
	}
	return n, nil
}

// Through returns the map with the network's addresses for its hosts.
func (n *Network) Through(m *shards.Map) (*shards.Map, error) {
	if n == nil {
		return m, nil
	}
	moved := slices.Clone(m.Hosts())
	for i, host := range moved {
		moved[i].DSN = Redirect(host.ConnString(), n.proxies[i].Listen, "")
	}
	return server.On(m, moved)
}

// Close breaks all connections.
func (n *Network) Close() {
	for _, proxy := range n.proxies {
		proxy.Stop()
	}
}
