package sql

import (
	"fmt"
	"strings"
)

// Ledger returns the script that makes the ledger of migrations, or brings it to the present version, which stands in
// the comment of its table. It waits for an installation under way.
func Ledger() string {
	script := render("ledger.sql", engineData{})
	return withVersion(script, "TABLE kiloshard.ledger", versionOf(script))
}

// LedgerIsThere returns a query for whether a database needs no [Ledger]: it has the present version, or it has the
// functions that are called, and the role does not own the ledger, so that it has to work with it as it is.
func LedgerIsThere() string {
	const query = `select pg_catalog.to_regprocedure('kiloshard.begin_migration(int,int,text,int,text,text,text,boolean)') is not null
	and pg_catalog.to_regprocedure('kiloshard.end_migration(text,int,text,text,int,int,text,text,text,boolean)') is not null
	and pg_catalog.to_regprocedure('kiloshard.try_shard(int,int,text)') is not null
	and (pg_catalog.obj_description(c.oid, 'pg_class') is not distinct from '%s' or not pg_catalog.pg_has_role(c.relowner, 'usage'))
from (select pg_catalog.to_regclass('kiloshard.ledger')) l (oid) left join pg_catalog.pg_class c on c.oid = l.oid`
	return fmt.Sprintf(query, VersionMark+Version(Ledger()))
}

// Shards returns a statement that has a row ready for the lock of each of some shards, so that none waits for another's to be made.
func Shards(numbers []int) string {
	text := make([]string, len(numbers))
	for i, n := range numbers {
		text[i] = fmt.Sprint(n)
	}
	return "insert into kiloshard.locks (lock) select n from pg_catalog.unnest('{" + strings.Join(text, ",") + "}'::int[]) n" +
		" where not exists (select from kiloshard.locks l where l.lock = n) on conflict do nothing"
}

// TryShard returns a query for whether a shard's lock was free; then it is held until the transaction ends. It waits for nobody. The
// database must have the ledger.
func TryShard(n int, schema string) string {
	return fmt.Sprintf("select kiloshard.try_shard(%d, %d, '%s')", ShardLock, n, schema)
}

// TryRow is the part of [TryShard] that only the owner can lock.
func TryRow(n int) string { return fmt.Sprintf("select kiloshard.try_row(%d)", n) }

// TryAdvisory is the rest of [TryShard] for the length of the session. Its lock is seen by those who do not look at the row, and
// lasts as long as a statement that its program has left behind. It is true, too, where the lock is held by
// somebody without rights in the schema.
func TryAdvisory(n int, schema string) string {
	return fmt.Sprintf("select pg_catalog.pg_try_advisory_lock(%[1]d, %[2]d) or not kiloshard.shard_is_held(%[1]d, %[2]d, '%[3]s')", ShardLock, n, schema)
}

// TryBeside returns a query for whether nobody with rights in the schema migrates or moves the shard; nobody does then until the
// transaction ends who takes the advisory lock.
func TryBeside(n int, schema string) string {
	return fmt.Sprintf(`select pg_catalog.pg_try_advisory_xact_lock_shared(%[1]d, %[2]d) or not exists (
	select from pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a on a.pid = l.pid
	where l.locktype = 'advisory' and l.objsubid = 2 and l.granted and l.classid::bigint = %[1]d and l.objid::bigint = %[2]d
		and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
		and pg_catalog.has_schema_privilege(a.usesysid, pg_catalog.to_regnamespace('%[3]s')::oid, 'create'))`, ShardLock, n, schema)
}

// LockHolder returns a query for who holds a lock of kiloshard.locks, in one text; it has no row if nobody does.
func LockHolder(lock int) string { return render("locks holder", lock) }
