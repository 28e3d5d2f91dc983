package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
)

// isolationSettings are wrong for whoever takes locks before a snapshot, or writes.
var isolationSettings = []string{"default_transaction_isolation=repeatable read"}

// userSettings are wrong for our own statements, and those of users who count on them work.
var userSettings = []string{
	"default_transaction_isolation=serializable", "default_transaction_deferrable=on", "idle_in_transaction_session_timeout=300", "idle_session_timeout=300",
	"lock_timeout=200", "row_security=off", "client_encoding=LATIN1",
	"search_path=pg_temp, public, pg_catalog", "standard_conforming_strings=off", "backslash_quote=off", "quote_all_identifiers=on", "transform_null_equals=on",
	"array_nulls=off", "check_function_bodies=off", "plpgsql.extra_errors=all", "plpgsql.extra_warnings=all", "client_min_messages=debug1",
	"DateStyle=German", "IntervalStyle=sql_standard", "TimeZone=Asia/Kolkata", "extra_float_digits=-10", "bytea_output=escape", "xmlbinary=hex", "xmloption=document",
	"lc_monetary=C.UTF-8", "gin_fuzzy_search_limit=1", "synchronous_commit=off", "enable_seqscan=off", "enable_hashjoin=off", "enable_sort=off",
}

// allSettings are wrong for every session. A subscription logs in to its publisher with the role's statement_timeout, which the connection
// string cannot change, so the timeout must allow a login on a busy machine.
var allSettings = append([]string{"default_transaction_read_only=on", "session_replication_role=replica", "statement_timeout=2000"}, userSettings...)

// wrongly has role and database of the script's hosts start sessions with wrong settings: wrongly isolation|user|all
func wrongly(ts *testscript.TestScript, neg bool, args []string) {
	sets := map[string][]string{"isolation": isolationSettings, "user": userSettings, "all": allSettings}
	if neg || len(args) != 1 || sets[args[0]] == nil {
		ts.Fatalf("usage: wrongly isolation|user|all")
	}
	ctx := context.Background()
	for _, host := range []string{"PG_A_DSN", "PG_B_DSN", "PG_MAP_DSN"} {
		config, err := pgx.ParseConfig(ts.Getenv(host))
		ts.Check(err)
		for name, value := range map[string]string{"default_transaction_read_only": "off", "statement_timeout": "0", "standard_conforming_strings": "on", "client_encoding": "UTF8"} {
			config.RuntimeParams[name] = value
		}
		conn, err := pgx.ConnectConfig(ctx, config)
		ts.Check(err)
		database, role := pgx.Identifier{config.Database}.Sanitize(), pgx.Identifier{config.User}.Sanitize()
		var script strings.Builder
		for _, on := range []string{"alter database " + database, "alter role " + role + " in database " + database} {
			fmt.Fprintf(&script, "%s reset all; ", on)
			for _, setting := range sets[args[0]] {
				name, value, _ := strings.Cut(setting, "=")
				if name == "statement_timeout" && host == "PG_MAP_DSN" {
					continue // a pooler may be before it, where nothing can be set when one connects
				}
				if name != "search_path" {
					value = "'" + value + "'"
				}
				fmt.Fprintf(&script, "%s set %s = %s; ", on, name, value)
			}
		}
		_, err = conn.Exec(ctx, script.String())
		ts.Check(err)
		ts.Check(conn.Close(ctx))
	}
}
