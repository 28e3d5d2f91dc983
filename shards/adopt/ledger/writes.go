package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Interval is how often at most one session records its writes to one table.
const Interval = 10 * time.Second

// recorder is the function of the triggers that record writes without a shard's path. What it has recorded is in a setting of the session,
// not of the transaction, so that each statement costs no row. A rollback takes both back. Where each request has a session of its own, each
// is recorded: so one in a thousand forgets older records, of its own kind and without waiting for another writer.
const recorder = `
create function kiloshard_adopt.record_old_write() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $kiloshard$
declare
	setting constant text := 'kiloshard_adopt.t' || tg_relid;
	client constant text := coalesce(current_setting('application_name', true), '');
	mark constant text := session_user || ' ' || client;
	last constant text := coalesce(current_setting(setting, true), '');
	seconds constant bigint := extract(epoch from clock_timestamp());
begin
	if substr(last, 12) = mark and left(last, 10) ~ '^[0-9]{10}$' and left(last, 10)::bigint between seconds - 9 and seconds then
		return null;
	end if;
	insert into kiloshard_adopt.old_writes values (tg_relid, session_user, client, clock_timestamp());
	perform set_config(setting, seconds || ' ' || mark, false);
	if random() < 0.001 and current_setting('transaction_isolation') = 'read committed' then -- a snapshot could have records that are gone
		delete from kiloshard_adopt.old_writes where ctid = any (array(select w.ctid from kiloshard_adopt.old_writes w
			where w.relation = tg_relid and w.role = session_user and w.application = client and w.at < to_timestamp(seconds) for update skip locked));
	end if;
	return null;
end
$kiloshard$;
revoke all on function kiloshard_adopt.record_old_write() from public;
`

// OldWay returns a condition that is true in a session whose first schema is not that of a shard. It has no names of tables, so a trigger can
// have it after WHEN, where Postgres takes it apart once, for any search_path.
func OldWay(m *shards.Map) string {
	return fmt.Sprintf(`(coalesce(pg_catalog.current_schema()::text, '') operator(pg_catalog.!~) '^%s[0-9]{5}$'::text)`, m.Config().SchemaPrefix)
}

// OldWrite is a role that wrote to a table without a shard's path.
type OldWrite struct {
	Table       string    `json:"table"` // with its schema
	Role        string    `json:"role"`  // that logged in
	Application string    `json:"application"`
	Last        time.Time `json:"last"` // up to [Interval] before the last write
}

// OldWrites returns the last write of each table, role and application, the newest first. Partitions count as their table. It first
// forgets what it does not need for that, if the transaction can write.
func OldWrites(ctx context.Context, q Querier) ([]OldWrite, error) {
	const forget = `delete from kiloshard_adopt.old_writes w using (
			select relation, role, application, max(at) as last from kiloshard_adopt.old_writes group by 1, 2, 3
		) k where k.relation = w.relation and k.role = w.role and k.application = w.application and w.at < k.last`
	if _, err := q.Exec(ctx, forget); err != nil {
		return nil, err
	}
	const query = `
		select coalesce(format('%I.%I', n.nspname, c.relname), w.relation::oid::text), w.role::text, w.application, max(w.at)
		from kiloshard_adopt.old_writes w
		left join pg_class c on c.oid = coalesce(pg_partition_root(w.relation), w.relation) left join pg_namespace n on n.oid = c.relnamespace
		group by 1, 2, 3 order by 4 desc, 1, 2, 3`
	rows, err := q.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[OldWrite])
}
