package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
)

// psql runs a statement on a host and checks what it gives, if anything is expected; rows are
// separated by commas: psql PG_A_DSN 'select 1' 1
func psql(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: psql VARIABLE STATEMENT [EXPECTED]")
	}
	ctx := context.Background()
	config, err := pgx.ParseConfig(ts.Getenv(args[0]))
	ts.Check(err)
	config.RuntimeParams["standard_conforming_strings"], config.RuntimeParams["client_encoding"] = "on", "UTF8" // for pgx
	conn, err := pgx.ConnectConfig(ctx, config)
	ts.Check(err)
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, args[1], pgx.QueryExecModeSimpleProtocol)
	ts.Check(err)
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		return string(row.RawValues()[0]), nil
	})
	ts.Check(err)
	if len(args) == 3 && strings.Join(got, ",") != args[2] {
		ts.Fatalf("%s gives %s, expected %s", args[1], strings.Join(got, ","), fmt.Sprint(args[2]))
	}
}
