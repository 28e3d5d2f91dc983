package provision

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/serverrole"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
)

// AddressStatus is the state of one address of a host with several.
type AddressStatus struct {
	Address  string // host:port
	Err      error  // why it does not answer; then the fields below are empty
	Recovery bool   // it is a standby that was not promoted
	Timeline uint32 // of a primary; 0 for a standby, or if the role may not see it
	Primary  bool   // it takes writes, and was promoted last
}

// address is one address of a host.
type address struct {
	name string      // host:port
	host shards.Host // with only this address in its DSN
	conn *pgx.Conn
	role serverrole.Role
}

// addressesOf returns the addresses in the DSN of a host. It returns none for a malformed DSN: connecting returns the
// error.
func addressesOf(host shards.Host) (all []*address) {
	hosts, ports, _ := connect.Addresses(host)
	for i := range hosts {
		all = append(all, &address{name: net.JoinHostPort(hosts[i], strconv.Itoa(int(ports[i]))), host: connect.At(host, hosts[i], ports[i])})
	}
	return all
}

// readRole connects to an address and reads the server's role. It ignores target_session_attrs.
func (a *address) readRole(ctx context.Context) AddressStatus {
	s := AddressStatus{Address: a.name}
	if a.conn, s.Err = session.OpenWith(ctx, a.host, func(c *pgx.ConnConfig) { c.ValidateConnect = nil }); s.Err != nil {
		return s
	}
	a.role, s.Err = serverrole.Read(ctx, a.conn.PgConn())
	s.Recovery, s.Timeline = a.role.Recovery, a.role.Timeline
	return s
}

// findPrimary connects to all addresses at once. It returns the state of each, and a connection to the primary; without
// a primary, to a standby; nil if none answers. A silent address may take half of the time that ctx leaves.
func findPrimary(ctx context.Context, addresses []*address) ([]AddressStatus, *pgx.Conn) {
	all := make([]AddressStatus, len(addresses))
	limited, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		limited, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	defer cancel()
	var wg sync.WaitGroup
	for i, a := range addresses {
		wg.Go(func() { all[i] = a.readRole(limited) })
	}
	wg.Wait()
	best := -1
	for i, s := range all {
		if s.Err == nil && (best < 0 || addresses[i].role.Newer(addresses[best].role)) {
			best = i
		}
	}
	for i, a := range addresses {
		if i != best && a.conn != nil {
			_ = a.conn.Close(ctx)
		}
	}
	if best < 0 {
		return all, nil
	}
	all[best].Primary = !all[best].Recovery
	return all, addresses[best].conn
}
