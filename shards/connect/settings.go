package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// transactionSettings are those that every session of ours states, also where it runs the SQL of users: locks are taken before a
// snapshot, a later statement sees what others have committed meanwhile, and a session that waits for others is not ended.
var transactionSettings = map[string]string{
	"client_encoding":                     "UTF8",
	"default_transaction_isolation":       "read committed",
	"default_transaction_read_only":       "off",
	"default_transaction_deferrable":      "off",
	"idle_in_transaction_session_timeout": "0",
	"idle_session_timeout":                "0",
	"exit_on_error":                       "off",
	// Without the plan that they forbid, a question about all shards of a host takes minutes.
	"enable_seqscan": "on", "enable_indexscan": "on", "enable_bitmapscan": "on", "enable_sort": "on",
	"enable_hashjoin": "on", "enable_mergejoin": "on", "enable_nestloop": "on", "enable_hashagg": "on",
}

// ownSettings are those that a session also states if only our own statements run in it. A role or a database may have others:
// they would give names another meaning, values and definitions another text, and queries other rows.
var ownSettings = map[string]string{
	"search_path":                 "pg_catalog, pg_temp",
	"statement_timeout":           "0",
	"client_min_messages":         "warning",
	"standard_conforming_strings": "on",
	"backslash_quote":             "safe_encoding",
	"escape_string_warning":       "on",
	"quote_all_identifiers":       "off",
	"transform_null_equals":       "off",
	"array_nulls":                 "on",
	"row_security":                "off", // an error instead of some of the rows
	"gin_fuzzy_search_limit":      "0",
	"check_function_bodies":       "on",
	"default_table_access_method": "heap",
	"plpgsql.extra_errors":        "none",
	"plpgsql.extra_warnings":      "none",
	"DateStyle":                   "ISO, YMD",
	"IntervalStyle":               "postgres",
	"TimeZone":                    "UTC",
	"extra_float_digits":          "1",
	"bytea_output":                "hex",
	"xmlbinary":                   "base64",
	"xmloption":                   "content",
	"lc_monetary":                 "C",
	"lc_numeric":                  "C",
	"lc_time":                     "C",
	"jit":                         "off",
}

// stateAll states all settings in a config, over those of the DSN but its lock_timeout.
func stateAll(config *pgconn.Config) {
	stateTransactions(config)
	maps.Copy(config.RuntimeParams, ownSettings)
	config.RuntimeParams["lock_timeout"] = cmp.Or(config.RuntimeParams["lock_timeout"], "0")
}

func stateTransactions(config *pgconn.Config) { maps.Copy(config.RuntimeParams, transactionSettings) }

// StateTracked states the settings that a pooler follows too (PgBouncer's track_extra_parameters): how texts are read and written.
func StateTracked(config *pgconn.Config) {
	for _, name := range []string{"standard_conforming_strings", "DateStyle", "TimeZone"} {
		config.RuntimeParams[name] = ownSettings[name]
	}
}

// CheckRole is a statement that sets session_replication_role back to origin if a role or a database has another, with which no
// foreign key is checked, and no trigger fires. Few roles may send it when they connect, or set it. RESET ALL takes it back.
const CheckRole = `select pg_catalog.set_config('session_replication_role', 'origin', false) where pg_catalog.current_setting('session_replication_role') operator(pg_catalog.<>) 'origin'`

// later are the statements for settings that not every release has, and that depend on the server's own.
const later = CheckRole + `;
select pg_catalog.set_config('synchronous_commit', 'on', false) where pg_catalog.current_setting('synchronous_commit') operator(pg_catalog.=) 'off';
select pg_catalog.set_config('transaction_timeout', '0', false) where pg_catalog.current_setting('transaction_timeout', true) operator(pg_catalog.<>) '0'`

// state runs statements that set the session's settings.
func state(ctx context.Context, conn *pgconn.PgConn, statements string) error {
	_, err := conn.Exec(ctx, statements).ReadAll()
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		return fmt.Errorf("session_replication_role is not origin, by ALTER ROLE or ALTER DATABASE, and the role may not set it: expected ALTER … RESET session_replication_role: %w", err)
	}
	return err
}

// Begin begins a transaction of ours in a session that users have settings in, or a pooler.
const Begin = `begin isolation level read committed read write not deferrable`

// Local is the statement that follows [Begin]: it states the settings of this transaction.
func Local() string {
	var all []string
	for name, value := range ownSettings {
		all = append(all, fmt.Sprintf("pg_catalog.set_config('%s', '%s', true)", name, value))
	}
	return "select pg_catalog.set_config('idle_in_transaction_session_timeout', '0', true), " + strings.Join(all, ", ")
}
