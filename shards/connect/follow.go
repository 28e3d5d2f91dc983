package connect

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/internal/serverrole"
)

// OlderPrimaryError says that of a host's addresses only a primary answers that another one has superseded: what is written there is lost.
type OlderPrimaryError struct {
	Address, Newer   string // with their ports
	Timeline, Latest uint32
}

// Error names both servers.
func (e *OlderPrimaryError) Error() string {
	return fmt.Sprintf("%s is a primary on timeline %d, and %s, which was promoted after it to timeline %d, does not answer: expected the latter", e.Address, e.Timeline, e.Newer, e.Latest)
}

// newest is the primary that was promoted last, as far as is known.
type newest struct {
	mu   sync.Mutex // guards what follows
	at   address
	role serverrole.Role
}

// AttendNewest is [Login.Attend] for a pool whose connections go to the primary that was promoted last among the host's addresses. A connection
// that is open stays: see [Login.Newest].
func (l *Login) AttendNewest(config *pgxpool.Config) {
	l.newest = &newest{}
	l.Attend(config)
}

// Several reports whether the DSN has several addresses now.
func (l *Login) Several() bool {
	config, err := parse(l.host)
	return err == nil && len(addressesOf(&config.ConnConfig.Config)) > 1
}

// Newest logs in at each address of the host, and returns that of the primary that was promoted last, as a DSN names it. It is for a Login with
// [Login.AttendNewest]. The error is that of [Open], or an [OlderPrimaryError].
func (l *Login) Newest(ctx context.Context) (host string, port uint16, err error) {
	best, err := newestOf(ctx, l.host)
	if err != nil {
		return "", 0, err
	}
	l.newest.mu.Lock()
	defer l.newest.mu.Unlock()
	known := l.newest.role
	switch {
	case known.System == best.role.System && !best.role.Recovery && best.role.Timeline != 0 && best.role.Timeline < known.Timeline:
		return "", 0, &OlderPrimaryError{Address: best.at.String(), Newer: l.newest.at.String(), Timeline: best.role.Timeline, Latest: known.Timeline}
	case !best.role.Recovery && best.role.Timeline != 0:
		l.newest.at, l.newest.role = best.at, best.role
	}
	return best.at.host, best.at.port, nil
}

// goToNewest leaves one address in the config of a connection that is about to be made.
func (l *Login) goToNewest(ctx context.Context, c *pgx.ConnConfig) error {
	if l.newest == nil || len(addressesOf(&c.Config)) == 1 {
		return nil
	}
	host, port, err := l.Newest(ctx)
	if err != nil {
		return err
	}
	var left []*pgconn.FallbackConfig
	for _, f := range append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...) {
		if f.Host == host && f.Port == port {
			left = append(left, f)
		}
	}
	place{*left[0], left[1:]}.put(c)
	return nil
}
