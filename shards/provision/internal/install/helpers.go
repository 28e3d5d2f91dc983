package install

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// InstallHelpers runs the scripts of the helper schemas on all hosts at once, and creates missing extensions. The
// sessions hold the hosts' locks.
func (p *Plan) InstallHelpers(ctx context.Context, s *hosts.Sessions) error {
	return s.Each(func(i int, conn *pgx.Conn) error {
		if p.scripts[i] != "" {
			if err := session.Run(ctx, conn, p.scripts[i]); err != nil {
				return explain(ctx, s.Hosts()[i], err)
			}
		}
		return p.hosts[i].Extensions.Create(ctx, conn, p.wanted.Map)
	})
}

// explain returns the [connect.IdentityError] of a host that refused the installation because its shards belong to
// another cluster, epoch or layout. It returns any other error unchanged.
func explain(ctx context.Context, host shards.Host, err error) error {
	if pg := (*pgconn.PgError)(nil); !errors.As(err, &pg) || pg.Code != sql.Refused {
		return err
	}
	conn, refused := session.Open(ctx, host)
	if identity := (*connect.IdentityError)(nil); errors.As(refused, &identity) {
		return identity
	}
	if refused == nil {
		_ = conn.Close(ctx) // it was not used
	}
	return err
}
