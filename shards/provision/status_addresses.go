package provision

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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

// address is one of a host's, with what a connection needs to go there and nowhere else.
type address struct {
	first     pgconn.FallbackConfig
	fallbacks []*pgconn.FallbackConfig // the same address without TLS
	conn      *pgx.Conn
}

// addressesOf returns the addresses in the DSN of a host, none for one that is malformed.
func addressesOf(host shards.Host) (all []*address) {
	_, config, err := connect.ForPool(host)
	if err != nil {
		return nil // whoever connects says why
	}
	c := config.ConnConfig
	all = append(all, &address{first: pgconn.FallbackConfig{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}})
	for _, f := range c.Fallbacks {
		if last := all[len(all)-1]; last.first.Host == f.Host && last.first.Port == f.Port {
			last.fallbacks = append(last.fallbacks, f)
			continue
		}
		all = append(all, &address{first: *f})
	}
	return all
}

// ask connects to an address and asks what it is.
func (a *address) ask(ctx context.Context, host shards.Host) AddressStatus {
	s := AddressStatus{Address: net.JoinHostPort(a.first.Host, strconv.Itoa(int(a.first.Port)))}
	a.conn, s.Err = openAt(ctx, host, func(c *pgx.ConnConfig) {
		c.Host, c.Port, c.TLSConfig, c.Fallbacks = a.first.Host, a.first.Port, a.first.TLSConfig, a.fallbacks
		c.ValidateConnect = nil // whatever target_session_attrs says
	})
	if s.Err != nil {
		return s
	}
	if s.Err = a.conn.QueryRow(ctx, `SELECT pg_is_in_recovery()`).Scan(&s.Recovery); s.Err != nil || s.Recovery {
		return s
	}
	var timeline string
	const query = `SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)`
	if a.conn.QueryRow(ctx, query).Scan(&timeline) == nil { // the role may not be allowed to
		number, _ := strconv.ParseUint(timeline, 16, 32)
		s.Timeline = uint32(number)
	}
	return s
}

// findPrimary asks all addresses at once. It returns what each is, and a connection to the primary, or to a standby if
// there is no primary; nil if none answers. Those that are silent may take half of the time of ctx.
func findPrimary(ctx context.Context, host shards.Host, addresses []*address) ([]AddressStatus, *pgx.Conn) {
	all := make([]AddressStatus, len(addresses))
	limited, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		limited, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	defer cancel()
	var wg sync.WaitGroup
	for i, a := range addresses {
		wg.Go(func() { all[i] = a.ask(limited, host) })
	}
	wg.Wait()
	best := -1
	for i, s := range all {
		if s.Err == nil && (best < 0 || s.beats(all[best])) {
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

// beats reports whether an address is the primary rather than another one that comes before it in the DSN.
func (s AddressStatus) beats(other AddressStatus) bool {
	if s.Recovery != other.Recovery {
		return other.Recovery
	}
	return s.Timeline > other.Timeline
}
