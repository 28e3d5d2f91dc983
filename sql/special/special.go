// Package special keeps code of others from running when one of Kiloshard's tables is read. It does not import package sql,
// whose templates would make every service larger by a half.
package special

import "strings"

// Refused is the SQLSTATE with which Kiloshard's SQL refuses an operation.
const Refused = "KS001"

// Refuse returns a statement that fails with SQLSTATE [Refused] unless a table, with its schema, is a plain one of
// Postgres's own types without policies: reading that in the same transaction runs no code of whoever made it. It locks the
// table, so that its maker cannot put another relation in its place, and needs the right to read it. It waits for the lock
// for 30 seconds, unless the session has a lock_timeout. Any role can use it.
func Refuse(table string) string {
	return strings.NewReplacer("{table}", table, "{refused}", Refused).Replace(statement)
}

const statement = `DO $kiloshard$
BEGIN
  IF pg_catalog.current_setting('lock_timeout') OPERATOR(pg_catalog.=) '0' THEN
    PERFORM pg_catalog.set_config('lock_timeout', '30s', true);
  END IF;
  LOCK TABLE {table} IN ACCESS SHARE MODE;
  IF EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass('{table}')
    AND (c.relkind OPERATOR(pg_catalog.<>) 'r' OR c.relrowsecurity OR c.relhassubclass OR EXISTS (
      SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) a.atttypid
      WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attnum OPERATOR(pg_catalog.>) 0
        AND t.typnamespace OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.regnamespace))) THEN
    RAISE EXCEPTION '{table} was made by somebody else: expected a plain table' USING ERRCODE = '{refused}';
  END IF;
END
$kiloshard$;`
