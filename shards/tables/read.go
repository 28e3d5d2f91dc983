package tables

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Querier is a session or a transaction that runs queries. Its search_path must have nothing but pg_catalog, as that of
// connect.Open has.
type Querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// Read reads the catalog. It takes no lock on a table for longer than a query. ctx governs the queries. For one state of all
// that it reads, q must be a transaction of isolation level repeatable read.
func Read(ctx context.Context, q Querier) (*Catalog, error) {
	c := &Catalog{}
	byOID := map[uint32]*Table{}
	for _, part := range []struct {
		what string
		read func(context.Context, Querier, *Catalog, map[uint32]*Table) error
	}{
		{"tables", readTables}, {"columns", readColumns}, {"unique keys", readKeys}, {"inheritance", readParents}, {"foreign keys", readForeignKeys},
	} {
		if err := part.read(ctx, q, c, byOID); err != nil {
			return nil, fmt.Errorf("%s of the catalog: %w", part.what, err)
		}
	}
	c.finish()
	return c, nil
}

// OfKiloshard is a condition on a row n of pg_namespace: the schema is Kiloshard's own, a shard's, or one of an adoption.
const OfKiloshard = `(n.nspname in ('kiloshard', 'kiloshard_locks') or n.nspname ~ '^kiloshard_adopt(_|$)' or n.nspname ~ '[0-9]{5}$'
	and exists (select from pg_class k where k.relnamespace = n.oid and k.relname = 'next_id_seq' and k.relkind = 'S'))`

// ours are the tables that are read: those of users.
const ours = `
	with ours as materialized (
		select c.oid, n.nspname::text as schema, c.relname::text as name, c.relkind::text as kind, c.relpersistence = 'u' as unlogged, c.reltuples
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'p', 'f') and not c.relispartition and c.relpersistence <> 't'
		and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not ` + OfKiloshard + `
		and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'))`

func readTables(ctx context.Context, q Querier, c *Catalog, byOID map[uint32]*Table) error {
	const query = ours + `
		select o.oid, o.schema, o.name, o.kind, o.unlogged, coalesce(p.partitions, 0), coalesce(p.rows, o.reltuples)::bigint,
			coalesce(p.bytes, pg_total_relation_size(o.oid), 0)::bigint
		from ours o left join lateral (
			select count(*)::int - 1, sum(pg_total_relation_size(l.relid)), case when bool_or(l.isleaf and k.reltuples < 0) then -1
				else coalesce(sum(k.reltuples) filter (where l.isleaf), 0) end
			from pg_partition_tree(o.oid) l join pg_class k on k.oid = l.relid where o.kind = 'p'
			having o.kind = 'p'
		) p (partitions, bytes, rows) on true`
	rows, err := q.Query(ctx, query)
	if err != nil {
		return err
	}
	var t Table
	var kind string
	_, err = pgx.ForEachRow(rows, []any{&t.oid, &t.Name.Schema, &t.Name.Table, &kind, &t.Unlogged, &t.Partitions, &t.Rows, &t.Bytes}, func() error {
		table := t
		table.Kind = map[string]Kind{"r": Ordinary, "p": Partitioned, "f": Foreign}[kind]
		c.Tables, byOID[t.oid] = append(c.Tables, &table), &table
		return nil
	})
	return err
}

func readColumns(ctx context.Context, q Querier, _ *Catalog, byOID map[uint32]*Table) error {
	const query = ours + `
		select o.oid, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef or a.attidentity <> '', coalesce((
			select min(format('%I.%I', n.nspname, s.relname)) from pg_depend d
			join pg_class s on s.oid = case d.classid when 'pg_class'::regclass then d.objid else d.refobjid end and s.relkind = 'S'
			join pg_namespace n on n.oid = s.relnamespace
			where d.classid = 'pg_class'::regclass and d.deptype = 'i' and d.refclassid = 'pg_class'::regclass and d.refobjid = o.oid and d.refobjsubid = a.attnum
			or d.classid = 'pg_attrdef'::regclass and d.objid = f.oid and d.refclassid = 'pg_class'::regclass
		), ''), a.attidentity = 'a', a.attgenerated <> '', coalesce((
			with recursive base (oid) as (select a.atttypid union all select y.typbasetype from base b join pg_type y on y.oid = b.oid where y.typbasetype <> 0)
			select min(n.nspname::text) from base b join pg_opclass c on c.opcintype = b.oid and c.opcdefault
			join pg_am m on m.oid = c.opcmethod and m.amname = 'btree'
			join pg_amop e on e.amopfamily = c.opcfamily and e.amoplefttype = b.oid and e.amoprighttype = b.oid and e.amopstrategy = 3
			join pg_operator p on p.oid = e.amopopr join pg_namespace n on n.oid = p.oprnamespace where n.nspname <> 'pg_catalog'
		), '')
		from ours o join pg_attribute a on a.attrelid = o.oid left join pg_attrdef f on f.adrelid = o.oid and f.adnum = a.attnum
		where a.attnum > 0 and not a.attisdropped
		order by o.oid, a.attnum`
	rows, err := q.Query(ctx, query)
	if err != nil {
		return err
	}
	var oid uint32
	var column Column
	_, err = pgx.ForEachRow(rows, []any{&oid, &column.Name, &column.Type, &column.NotNull, &column.Default, &column.Sequence, &column.Always, &column.Computed, &column.Schema}, func() error {
		byOID[oid].Columns = append(byOID[oid].Columns, column)
		return nil
	})
	return err
}

// readKeys reads those that are unique by =. One WITHOUT OVERLAPS is an exclusion constraint, which ON CONFLICT cannot name.
func readKeys(ctx context.Context, q Querier, _ *Catalog, byOID map[uint32]*Table) error {
	const query = ours + `
		select o.oid, x.relname::text, i.indisprimary, i.indpred is not null, i.indexprs is not null, not i.indimmediate, array(
			select a.attname::text from unnest(i.indkey::int2[]) with ordinality k (attnum, n)
			join pg_attribute a on a.attrelid = o.oid and a.attnum = k.attnum where k.n <= i.indnkeyatts order by k.n)
		from ours o join pg_index i on i.indrelid = o.oid join pg_class x on x.oid = i.indexrelid
		where i.indisunique and i.indisvalid and not i.indisexclusion
		order by o.oid, i.indisprimary desc, x.relname`
	rows, err := q.Query(ctx, query)
	if err != nil {
		return err
	}
	var oid uint32
	var key UniqueKey
	_, err = pgx.ForEachRow(rows, []any{&oid, &key.Name, &key.Primary, &key.Partial, &key.Computed, &key.Deferrable, &key.Columns}, func() error {
		byOID[oid].Keys = append(byOID[oid].Keys, key)
		key.Columns = nil // the next row gets its own
		return nil
	})
	return err
}

func readParents(ctx context.Context, q Querier, _ *Catalog, byOID map[uint32]*Table) error {
	rows, err := q.Query(ctx, ours+` select i.inhrelid, i.inhparent from pg_inherits i join ours o on o.oid = i.inhrelid order by 1, i.inhseqno`)
	if err != nil {
		return err
	}
	var child, parent uint32
	_, err = pgx.ForEachRow(rows, []any{&child, &parent}, func() error {
		if p := byOID[parent]; p != nil {
			byOID[child].Parents, p.Children = append(byOID[child].Parents, p.Name), append(p.Children, byOID[child].Name)
		}
		return nil
	})
	return err
}

// readForeignKeys reads those of partitioned tables once. One that refers to a partition counts as one to its whole table.
func readForeignKeys(ctx context.Context, q Querier, c *Catalog, byOID map[uint32]*Table) error {
	const query = ours + `
		select f.conname::text, f.conrelid, t.oid, f.condeferrable, f.convalidated, f.confupdtype not in ('a', 'r') or f.confdeltype not in ('a', 'r'),
			array(select a.attname::text from unnest(f.conkey) with ordinality k (attnum, n)
				join pg_attribute a on a.attrelid = f.conrelid and a.attnum = k.attnum order by k.n),
			array(select a.attname::text from unnest(f.confkey) with ordinality k (attnum, n)
				join pg_attribute a on a.attrelid = f.confrelid and a.attnum = k.attnum order by k.n)
		from pg_constraint f join ours o on o.oid = f.conrelid
		join ours t on t.oid = coalesce(pg_partition_root(f.confrelid), f.confrelid)
		where f.contype = 'f' and f.conparentid = 0`
	rows, err := q.Query(ctx, query)
	if err != nil {
		return err
	}
	var from, to uint32
	f := ForeignKey{Declared: true}
	_, err = pgx.ForEachRow(rows, []any{&f.Name, &from, &to, &f.Deferrable, &f.Valid, &f.Cascades, &f.Columns, &f.References}, func() error {
		f.From, f.To = byOID[from].Name, byOID[to].Name
		c.ForeignKeys = append(c.ForeignKeys, f)
		f.Columns, f.References = nil, nil // the next row gets its own
		return nil
	})
	return err
}
