package provision

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/serverrole"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
)

// AddressStatus is the state of one address of a host with several, or of a replica.
type AddressStatus struct {
	Address  string // host:port
	Err      error  // why it does not answer; then the fields below are empty
	Recovery bool   // it is a standby that was not promoted
	Timeline uint32 // that a primary writes, or that a standby's data are on; 0 if the role may not see it
	Primary  bool   // it takes writes, and was promoted last; two addresses may lead to that server

	// What follows compares it with the primary, if there is one.
	Rival         bool // it takes writes as well: see Rival
	OtherTimeline bool // of a standby: its data are on another timeline than the primary's, so it does not follow the primary
	OtherCluster  bool // it has another system identifier
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

// replicasOf returns the addresses of a host's replicas that are none of the host's own.
func replicasOf(host shards.Host, own []*address) (all []*address) {
	for i := range host.Replicas {
		for _, a := range addressesOf(host.Replica(i)) {
			if !slices.ContainsFunc(slices.Concat(own, all), func(known *address) bool { return known.name == a.name }) {
				all = append(all, a)
			}
		}
	}
	return all
}

// readRole connects to an address and reads the server's role. It ignores target_session_attrs.
func (a *address) readRole(ctx context.Context) AddressStatus {
	s := AddressStatus{Address: a.name}
	a.conn, s.Err = session.OpenWith(ctx, a.host, func(c *pgx.ConnConfig) {
		c.ValidateConnect = nil
		delete(c.RuntimeParams, "default_transaction_read_only") // the server's own says whether services can write
	})
	if s.Err != nil {
		return s
	}
	if a.role, s.Err = serverrole.Read(ctx, a.conn.PgConn()); s.Err != nil {
		return s
	}
	s.Recovery, s.Timeline = a.role.Recovery, a.role.Timeline
	if s.Recovery {
		s.Timeline, s.Err = serverrole.ReadDataTimeline(ctx, a.conn.PgConn())
	}
	return s
}

// readRoles connects to all addresses at once. A silent address may take half of the time that ctx leaves. The caller closes the sessions.
func readRoles(ctx context.Context, addresses []*address) []AddressStatus {
	all := make([]AddressStatus, len(addresses))
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	var wg sync.WaitGroup
	for i, a := range addresses {
		wg.Go(func() { all[i] = a.readRole(ctx) })
	}
	wg.Wait()
	return all
}

// findPrimary reads the roles of all addresses. It returns the state of each, and the address of the primary with its session; without
// a primary, that of a standby; nil if none answers. It closes the other sessions.
func findPrimary(ctx context.Context, addresses []*address) ([]AddressStatus, *address) {
	all := readRoles(ctx, addresses)
	best := -1
	for i, s := range all {
		if s.Err == nil && (best < 0 || addresses[i].role.Newer(addresses[best].role)) {
			best = i
		}
	}
	for i, a := range addresses {
		if i != best {
			a.close(ctx)
		}
	}
	if best < 0 {
		return all, nil
	}
	all[best].Primary = !all[best].Recovery
	for i := range all {
		if i != best {
			all[i].compare(addresses[i].role, addresses[best].role)
		}
	}
	return all, addresses[best]
}

// compare compares a server with the primary of its host.
func (s *AddressStatus) compare(role, primary serverrole.Role) {
	if s.Err != nil || primary.Recovery {
		return
	}
	s.OtherCluster = role.System != "" && primary.System != "" && role.System != primary.System
	if role.Recovery {
		s.OtherTimeline = !s.OtherCluster && s.Timeline != 0 && primary.Timeline != 0 && s.Timeline != primary.Timeline
		return
	}
	s.Primary, s.Rival = role.IsSameServer(primary), role.Rivals(primary)
}

func (a *address) close(ctx context.Context) {
	if a.conn != nil {
		_ = a.conn.Close(ctx)
	}
}
