package bench

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/kiloshard/kiloshard/shards"
)

// network delays the traffic between this program and the hosts. A nil network adds no delay.
type network struct {
	proxies []*toxiproxy.Proxy // one for each host, in the order of the map
}

// openNetwork opens a network with a delay each way.
func openNetwork(hosts []shards.Host, delay time.Duration) (*network, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n := &network{}
	for _, host := range hosts {
		cfg, err := pgx.ParseConfig(host.ConnString())
		if err != nil {
			n.close()
			return nil, err
		}
		if strings.HasPrefix(cfg.Host, "/") {
			n.close()
			return nil, fmt.Errorf("host %s uses a Unix socket: expected TCP, which can be delayed", host.Name)
		}
		upstream := net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port))
		proxy := toxiproxy.NewProxy(server, host.Name, "127.0.0.1:0", upstream)
		if err := proxy.Start(); err != nil {
			n.close()
			return nil, fmt.Errorf("proxy to host %s: %w", host.Name, err)
		}
		n.proxies = append(n.proxies, proxy)
		for _, direction := range []string{"upstream", "downstream"} {
			toxic := toxicOf(delay, direction)
			if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
				n.close()
				return nil, fmt.Errorf("proxy to host %s: %w", host.Name, err)
			}
		}
	}
	return n, nil
}

// through returns the map with its hosts' addresses in the network.
func (n *network) through(m *shards.Map) (*shards.Map, error) {
	if n == nil {
		return m, nil
	}
	hosts := slices.Clone(m.Hosts())
	for i, host := range hosts {
		hosts[i].DSN = redirected(host.ConnString(), n.proxies[i].Listen, "")
	}
	return onHosts(m, hosts)
}

// close breaks all connections.
func (n *network) close() {
	for _, proxy := range n.proxies {
		proxy.Stop()
	}
}

// roundTrip returns how long an empty statement takes, in milliseconds.
func (b *migrateBench) roundTrip(ctx context.Context, far *network) (float64, error) {
	m, err := far.through(b.base)
	if err != nil {
		return 0, err
	}
	conns, err := open(ctx, m.Hosts()[0], 1)
	if err != nil {
		return 0, err
	}
	defer closeConns(conns)
	var took []float64
	for range 100 {
		seconds, err := timed(func() error { _, err := conns[0].PgConn().Exec(ctx, "").ReadAll(); return err })
		if err != nil {
			return 0, err
		}
		took = append(took, seconds*1000)
	}
	return median(took), nil
}

// redirected returns the DSN with another address and database; an empty string keeps the old one.
func redirected(dsn, address, database string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" { // keywords and values: the last of two equal keywords counts
		if host, port, err := net.SplitHostPort(address); err == nil {
			dsn += fmt.Sprintf(" host='%s' port=%s", host, port)
		}
		if database != "" {
			dsn += " dbname='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(database) + "'"
		}
		return dsn
	}
	query := u.Query()
	if address != "" {
		u.Host = address
		query.Del("host")
		query.Del("port")
	}
	if database != "" {
		u.Path, u.RawPath = "/"+database, ""
		query.Del("dbname")
		query.Del("database")
	}
	u.RawQuery = encoded(query)
	return u.String()
}

// encoded encodes a space as %20: pgx, like libpq, does not decode a plus as a space.
func encoded(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }
