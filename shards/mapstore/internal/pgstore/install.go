package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// install creates the table, or upgrades an older one.
func (s *Store) install(ctx context.Context) error { return s.run(ctx, sql.Maps()) }

// prepare refuses a table of another role before anything is written to it, and upgrades an older table. It checks once:
// only the table's owner can change it.
func (s *Store) prepare(ctx context.Context) error {
	if s.prepared.Load() {
		return nil
	}
	if err := s.run(ctx, sql.RefuseForeign(sql.Ours{DatabaseOwner: true})); err != nil {
		return err
	}
	var isOld bool
	err := s.withConn(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, sql.MapsAreOld()).Scan(&isOld)
	})
	if err == nil && isOld {
		err = s.install(ctx)
	}
	if err == nil {
		s.prepared.Store(true)
	}
	return err
}

// run runs a script in one transaction.
func (s *Store) run(ctx context.Context, script string) error {
	return s.withConn(ctx, func(conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, connect.Begin+"; "+connect.Local()+";\n"+script+";\ncommit", pgx.QueryExecModeSimpleProtocol)
		return err
	})
}
