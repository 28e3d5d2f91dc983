package connect

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards"
)

// address is the target of one attempt to connect, as the DSN names it.
type address struct {
	host string
	port uint16
}

// At returns a host as commands connect to it whose DSN names only this address, for credentials that are valid for one address: a name, an IP, or the
// directory of a Unix socket. The DSN has the present values of its variables, and the address keeps the default sslmode that it has among the others.
func At(host shards.Host, name string, port uint16) shards.Host {
	host = host.ForCommands()
	text := host.ConnString()
	if !(address{name, port}).isElsewhere() { // the default depends on the others
		if whole, err := withMode(host); err == nil {
			text = whole
		}
	}
	host.DSN = dsn.With(text, "host", name, "port", strconv.Itoa(int(port)))
	return host
}

// Addresses returns the hosts and ports that the DSN of a host names for commands, each pair once. The error is an [Error].
func Addresses(host shards.Host) (hosts []string, ports []uint16, err error) {
	config, err := parse(host.ForCommands())
	if err != nil {
		return nil, nil, err
	}
	for _, a := range addressesOf(&config.ConnConfig.Config) {
		hosts, ports = append(hosts, a.host), append(ports, a.port)
	}
	return hosts, ports, nil
}

func (a address) String() string { return net.JoinHostPort(a.host, strconv.Itoa(int(a.port))) }

// addressesOf returns the addresses of a config, each once.
func addressesOf(c *pgconn.Config) []address {
	all := []address{{c.Host, c.Port}}
	for _, f := range c.Fallbacks {
		if a := (address{f.Host, f.Port}); !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// resolved records what the names of addresses resolved to. It is safe for concurrent use.
type resolved struct {
	mu  sync.Mutex
	ips map[string][]string
}

// watch makes a config record how names are resolved.
func (r *resolved) watch(c *pgconn.Config) {
	lookup := c.LookupFunc
	c.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		ips, err := lookup(ctx, host)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ips == nil {
			r.ips = map[string][]string{}
		}
		r.ips[host] = ips
		return ips, err
	}
}

var errWhichAddress = errors.New("the DSN has several addresses, and it is unknown which one this connection leads to, so it gets no password")

// of returns the address of a connection that was made with a config.
func (r *resolved) of(c *pgconn.Config, conn net.Conn) (address, error) {
	all := addressesOf(c)
	if len(all) == 1 {
		return all[0], nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	remote := conn.RemoteAddr().String()
	for _, a := range all {
		if _, path := pgconn.NetworkAddress(a.host, a.port); path == remote { // an IP, or a Unix socket
			return a, nil
		}
		for _, ip := range r.ips[a.host] {
			_, at := pgconn.NetworkAddress(ip, a.port)
			if ip == remote || at == remote { // a lookup may name the port, too
				return a, nil
			}
		}
	}
	return address{}, errWhichAddress
}
