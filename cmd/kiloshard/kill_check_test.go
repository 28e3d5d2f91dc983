package main

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// structureQuery gives, for each shard, a text of all its columns, constraints and indexes, without the schema's name.
const structureQuery = `
	with rel as (
		select c.oid, n.nspname as shard, c.relname, c.relkind
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname ~ '^shard_\d+$'
	), found as (
		select shard, format('%s %s', relkind, relname) as line from rel
		union all
		select r.shard, format('%s.%s %s %s %s', r.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid))
		from rel r join pg_attribute a on a.attrelid = r.oid left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
		where r.relkind = 'r' and a.attnum > 0 and not a.attisdropped
		union all
		select r.shard, format('%s: %s %s %s', r.relname, k.conname, k.convalidated, pg_get_constraintdef(k.oid))
		from rel r join pg_constraint k on k.conrelid = r.oid
		union all
		select r.shard, format('%s %s %s', i.indisvalid, i.indisready, pg_get_indexdef(i.indexrelid))
		from rel r join pg_index i on i.indrelid = r.oid
	)
	select shard, string_agg(regexp_replace(line, '\mshard_\d+\.', '', 'g'), E'\n' order by line collate "C") as structure
	from found group by shard`

// check checks that all shards have the same structure, that of killMigrations, and each file exactly once.
func (c *killCluster) check() {
	c.t.Helper()
	first := ""
	c.onHosts(func(conn *pgx.Conn, name string, from, to int) {
		c.exec(conn, "set enable_nestloop = off; set jit = off")
		for shard, structure := range c.pairs(conn, structureQuery) {
			if first == "" {
				first = structure
			}
			if structure != first {
				c.t.Errorf("%s on %s has another structure:\n%s\nexpected\n%s", shard, name, structure, first)
			}
		}
		logged, entered, versions := c.pairs(conn, logsQuery(from, to)), c.pairs(conn, enteredQuery), c.pairs(conn, versionsQuery(from, to))
		for n := from; n <= to; n++ {
			shard := fmt.Sprint(n)
			if logged[shard] != "1,2,3,4,5" {
				c.t.Errorf("shard %d on %s: its files were run as often as %s, expected 1,2,3,4,5", n, name, logged[shard])
			}
			if entered[shard] != "1 001_users.sql up t,2 002_photos.sql up t,3 003_likes.sql up t,4 004_wide.sql up t,5 005_id.sql up t" {
				c.t.Errorf("shard %d on %s: its ledger has %s", n, name, entered[shard])
			}
			if versions[shard] != "5" {
				c.t.Errorf("shard %d on %s stands at version %s", n, name, versions[shard])
			}
		}
		if want := to - from + 1; len(entered) != want {
			c.t.Errorf("%s: the ledger has entries of %d shards, expected %d", name, len(entered), want)
		}
	})
	for _, part := range []string{"r likes\n", "t t CREATE UNIQUE INDEX photos_title ON photos", "likes.kind smallint t ", "users: users_name t UNIQUE (name)"} {
		if !strings.Contains(first, part) {
			c.t.Errorf("the structure lacks %q:\n%s", part, first)
		}
	}
}

// checkHalves checks that in each shard, wherever it stands, the version, the ledger and what the files did
// tell the same. Nobody may be at work.
func (c *killCluster) checkHalves() {
	c.t.Helper()
	c.onHosts(func(conn *pgx.Conn, name string, from, to int) {
		var at []int // the shards that have a version table, and with it a log
		rows, err := conn.Query(c.t.Context(), `select substr(nspname, 7)::int from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where relname = 'schema_version' and nspname ~ '^shard_\d+$' order by 1`)
		if err == nil {
			at, err = pgx.CollectRows(rows, pgx.RowTo[int])
		}
		if err != nil {
			c.t.Fatal(err)
		}
		if len(at) == 0 {
			return // it was killed before it made the ledger, or just after
		}
		entered := c.pairs(conn, strings.Replace(enteredQuery, "format('%s %s %s %s', version, file, direction, current)", "version::text", 1))
		if len(entered) != len(at) {
			c.t.Errorf("%s: the ledger has entries of %d shards, and %d have a version", name, len(entered), len(at))
		}
		logged, versions := c.pairs(conn, ofEach(at, logQuery)), c.pairs(conn, ofEach(at, versionQuery))
		for _, n := range at {
			shard := fmt.Sprint(n)
			upTo := "1,2,3,4,5"[:max(0, 2*int(versions[shard][0]-'0')-1)]
			if logged[shard] != upTo || entered[shard] != upTo {
				c.t.Errorf("shard %d on %s stands at version %s; its files were run as often as %s, and entered as %s", n, name, versions[shard], logged[shard], entered[shard])
			}
		}
	})
}

const (
	logQuery     = "select %[1]d::text, string_agg(file::text, ',' order by file) from shard_%05[1]d.log"
	versionQuery = "select %[1]d::text, version::text from shard_%05[1]d.schema_version"
	enteredQuery = `select shard::text, string_agg(format('%s %s %s %s', version, file, direction, current), ',' order by version) from kiloshard.ledger where error is null group by shard`
)

func logsQuery(from, to int) string     { return ofEach(numbers(from, to), logQuery) }
func versionsQuery(from, to int) string { return ofEach(numbers(from, to), versionQuery) }

func numbers(from, to int) []int {
	var all []int
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// ofEach joins a query for each of some shards to one.
func ofEach(shards []int, query string) string {
	queries := make([]string, len(shards))
	for i, n := range shards {
		queries[i] = fmt.Sprintf(query, n)
	}
	return strings.Join(queries, " union all ")
}

// pairs returns the rows of a query, each a name and a text.
func (c *killCluster) pairs(conn *pgx.Conn, query string) map[string]string {
	c.t.Helper()
	rows, err := conn.Query(c.t.Context(), query, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		c.t.Fatal(err)
	}
	found := map[string]string{}
	var name, text string
	if _, err = pgx.ForEachRow(rows, []any{&name, &text}, func() error { found[name] = text; return nil }); err != nil {
		c.t.Fatal(err)
	}
	return found
}

func (c *killCluster) exec(conn *pgx.Conn, statements string) {
	c.t.Helper()
	if _, err := conn.Exec(c.t.Context(), statements); err != nil {
		c.t.Fatal(err)
	}
}
