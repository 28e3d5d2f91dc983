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
)

// AddressStatus is how one address of a host with several is doing.
type AddressStatus struct {
	Address  string // host:port
	Err      error  // why it does not answer; then what follows is empty
	Recovery bool   // it is a standby that was not promoted
	Timeline uint32 // of what takes writes; 0 of a standby, or if the role may not see it
	Primary  bool   // the one that takes writes, and was promoted last
}

// address is one of a host's.
type address struct {
	name string      // host:port
	host shards.Host // as if its DSN named this address alone
	conn *pgx.Conn
	role serverrole.Role
}

// addressesOf returns the addresses in the DSN of a host, none for one that is malformed: connecting returns the error.
func addressesOf(host shards.Host) (all []*address) {
	hosts, ports, _ := connect.Addresses(host)
	for i := range hosts {
		all = append(all, &address{name: net.JoinHostPort(hosts[i], strconv.Itoa(int(ports[i]))), host: connect.At(host, hosts[i], ports[i])})
	}
	return all
}

// ask connects to an address and reads the server's role.
func (a *address) ask(ctx context.Context) AddressStatus {
	s := AddressStatus{Address: a.name}
	if a.conn, s.Err = openAt(ctx, a.host, func(c *pgx.ConnConfig) { c.ValidateConnect = nil }); s.Err != nil { // whatever target_session_attrs says
		return s
	}
	a.role, s.Err = serverrole.Read(ctx, a.conn.PgConn())
	s.Recovery, s.Timeline = a.role.Recovery, a.role.Timeline
	return s
}

// findPrimary asks all addresses at once. It returns what each is, and a connection to the primary, or to a standby if
// there is no primary; nil if none answers. Those that are silent may take half of the time of ctx.
func findPrimary(ctx context.Context, addresses []*address) ([]AddressStatus, *pgx.Conn) {
	all := make([]AddressStatus, len(addresses))
	limited, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		limited, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	defer cancel()
	var wg sync.WaitGroup
	for i, a := range addresses {
		wg.Go(func() { all[i] = a.ask(limited) })
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
