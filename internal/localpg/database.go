package localpg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg/internal/cleanup"
	"github.com/kiloshard/kiloshard/internal/localpg/internal/login"
)

// createDatabase creates an empty database in UTF8. ctx governs the connecting only.
func createDatabase(ctx context.Context, server login.DSN, name string) error {
	conn, err := server.Connect(ctx)
	if err != nil {
		return err
	}
	return cleanup.Do(ctx, func(ctx context.Context) error {
		defer conn.Close(ctx)
		var encoding string
		const query = "select pg_encoding_to_char(encoding) from pg_database where datname = 'template1'"
		if err := conn.QueryRow(ctx, query).Scan(&encoding); err != nil {
			return err
		}
		statement := "create database " + pgx.Identifier{name}.Sanitize()
		if encoding != "UTF8" { // the server came by its DSN, and initdb ran without a locale
			statement += " template template0 encoding 'UTF8' locale 'C'"
		}
		_, err := conn.Exec(ctx, statement)
		return err
	})
}

// dropDatabases drops databases, breaking their connections.
func dropDatabases(ctx context.Context, server login.DSN, names []string) error {
	conn, err := server.Connect(ctx)
	if err != nil {
		return fmt.Errorf("drop databases: %w", err)
	}
	defer conn.Close(ctx)
	var errs []error
	for _, name := range names {
		query := "drop database if exists " + pgx.Identifier{name}.Sanitize() + " with (force)"
		if _, err := conn.Exec(ctx, query); err != nil {
			errs = append(errs, fmt.Errorf("drop database %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
