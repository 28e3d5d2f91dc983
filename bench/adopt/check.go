package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// A check runs while no client makes a call. It reads the tables in schema public, or those of shards.
type check struct {
	b      *bench
	conn   *pgx.Conn
	step   string
	shards bool
}

// check checks the histories of all clients, and how many rows each table has. With shards it looks at the tables of these. With both it
// compares them with the old tables, too.
func (b *bench) check(ctx context.Context, step string, inShards, both bool) error {
	b.cfg.Progress("check after " + step)
	conn, err := pgx.Connect(ctx, b.host.ConnString())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	c := check{b, conn, step, inShards}
	if err := c.histories(ctx); err != nil {
		return err
	}
	if err := c.balances(ctx); err != nil {
		return err
	}
	if err := c.sizes(ctx); err != nil {
		return err
	}
	if both {
		for _, name := range sharded() {
			if err := c.compare(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrong counts rows that are not as they should be, and says why.
func (c check) wrong(count *int, n int, format string, args ...any) {
	if n > 0 {
		*count += n
		c.b.report.say("after %s: %d %s", c.step, n, fmt.Sprintf(format, args...))
	}
}

// rows is a subquery with the rows of a table: the shard, -1 in the old table, and some columns.
func (c check) rows(name, columns string) string {
	if !c.shards {
		return fmt.Sprintf("(select -1 as shard, %s from public.%s t)", columns, name)
	}
	var parts []string
	for n := range c.b.m.All().All() {
		parts = append(parts, fmt.Sprintf("select %d as shard, %s from %s.%s t", n, columns, c.b.m.Schema(n), name))
	}
	return "(" + strings.Join(parts, " union all ") + ")"
}

// found is where a row is, and its text.
type found struct {
	shard int64
	text  string
}

// histories compares what clients have written with what is there.
func (c check) histories(ctx context.Context) error {
	for _, t := range slices.Concat(chain, pairs) {
		text := "''::text"
		if t.text != "" {
			text = "t." + t.text
		}
		query := fmt.Sprintf(`select f.shard, f.a, f.b, f.text from unnest($1::bigint[], $2::bigint[]) k (a, b) join %s f on f.a = k.a and f.b = k.b`,
			c.rows(t.name, fmt.Sprintf("t.%s as a, t.%s as b, %s as text", t.id, t.parent, text)))
		for _, client := range c.b.clients.all {
			written := client.history.rows[t.name]
			var ids, parents []int64
			for k := range written {
				ids, parents = append(ids, k.id), append(parents, k.parent)
			}
			rows, err := c.conn.Query(ctx, query, ids, parents)
			if err != nil {
				return err
			}
			there := map[key][]found{}
			var k key
			var f found
			if _, err := pgx.ForEachRow(rows, []any{&f.shard, &k.id, &k.parent, &f.text}, func() error { there[k] = append(there[k], f); return nil }); err != nil {
				return err
			}
			for k, s := range written {
				if err := c.row(t, k, s, there[k]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// row checks one row of a history.
func (c check) row(t table, k key, s state, there []found) error {
	r := &c.b.report
	switch {
	case s.deleted && len(there) > 0:
		c.wrong(&r.Doubled, len(there), "of %s %v, which was deleted", t.name, k)
		return nil
	case s.deleted:
		return nil
	case len(there) == 0:
		c.wrong(&r.Lost, 1, "of %s %v", t.name, k)
		return nil
	}
	c.wrong(&r.Doubled, len(there)-1, "of %s %v more than once", t.name, k)
	n, err := c.b.m.ForKey(s.user)
	if err != nil {
		return err
	}
	if c.shards && there[0].shard != int64(n) {
		c.wrong(&r.Misplaced, 1, "of %s %v in shard %d, expected %d", t.name, k, there[0].shard, n)
	}
	if there[0].text != s.text {
		c.wrong(&r.Changed, 1, "of %s %v is %q, expected %q", t.name, k, there[0].text, s.text)
	}
	return nil
}

// balances compares the balances that all clients have written.
func (c check) balances(ctx context.Context) error {
	for n := range c.b.clients.balances {
		want := c.b.clients.balances[n].Load()
		var got int64
		err := c.conn.QueryRow(ctx, fmt.Sprintf("select f.balance from %s f where f.id = $1", c.rows("users", "t.id, t.balance")), n+1).Scan(&got)
		if errors.Is(err, pgx.ErrNoRows) {
			c.wrong(&c.b.report.Lost, 1, "of users %d", n+1)
			continue
		}
		if err != nil {
			return err
		}
		if got != want {
			c.wrong(&c.b.report.Changed, 1, "of users %d has balance %d, expected %d", n+1, got, want)
		}
	}
	return nil
}

// sizes compares how many rows there are with how many there were, and clients have added. It looks at the shard of each row, too.
func (c check) sizes(ctx context.Context) error {
	for _, name := range sharded() {
		want := c.b.began[name]
		for _, client := range c.b.clients.all {
			want += client.history.net(name)
		}
		var got int64
		if err := c.conn.QueryRow(ctx, fmt.Sprintf("select count(*) from %s f", c.rows(name, "1"))).Scan(&got); err != nil {
			return err
		}
		c.wrong(&c.b.report.Lost, int(max(0, want-got)), "rows of %s, which has %d, expected %d", name, got, want)
		c.wrong(&c.b.report.Doubled, int(max(0, got-want)), "rows of %s, which has %d, expected %d", name, got, want)
		if c.shards {
			if err := c.places(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// places counts rows of a table that are in a wrong shard: those with a user of another one, or without the row that leads to the user.
func (c check) places(ctx context.Context, name string) error {
	key, joins := keyOf(name)
	var parts []string
	for n := range c.b.m.All().All() {
		parts = append(parts, fmt.Sprintf("select count(*) filter (where %s %% %d is distinct from %d) as n from %s.%s t%s",
			key, c.b.m.Len(), n, c.b.m.Schema(n), name, strings.ReplaceAll(strings.ReplaceAll(joins, " join ", " left join "), "public.", c.b.m.Schema(n)+".")))
	}
	var misplaced int64
	if err := c.conn.QueryRow(ctx, "select sum(n)::bigint from ("+strings.Join(parts, " union all ")+") p").Scan(&misplaced); err != nil {
		return err
	}
	c.wrong(&c.b.report.Misplaced, int(misplaced), "rows of %s in a wrong shard", name)
	return nil
}

// compare compares the rows of a table in shards with those of the old one, by sums of hashes.
func (c check) compare(ctx context.Context, name string) error {
	key, joins := keyOf(name)
	old := fmt.Sprintf("(select %s %% %d as shard, t::text as r from public.%s t%s)", key, c.b.m.Len(), name, joins)
	now := c.rows(name, "t::text as r")
	sums := func(from string) (map[shards.Number]string, error) {
		rows, err := c.conn.Query(ctx, "select shard::int, concat_ws(' ', count(*), sum(hashtextextended(r, 0)), sum(hashtextextended(r, 1))), count(*) from "+from+" f group by 1")
		if err != nil {
			return nil, err
		}
		all := map[shards.Number]string{}
		var n int32
		var text string
		var count int
		_, err = pgx.ForEachRow(rows, []any{&n, &text, &count}, func() error {
			all[shards.Number(n)] = text
			c.b.report.Compared += count
			return nil
		})
		return all, err
	}
	before, err := sums(old)
	if err != nil {
		return err
	}
	after, err := sums(now)
	if err != nil {
		return err
	}
	var different []string
	for n := range c.b.m.All().All() {
		if before[n] != after[n] {
			different = append(different, fmt.Sprint(n))
		}
	}
	if len(different) == 0 {
		return nil
	}
	var lost, more int64
	query := fmt.Sprintf("select (select count(*) from (%s except all %s) o), (select count(*) from (%[2]s except all %[1]s) n)", "select * from "+old+" a", "select * from "+now+" b")
	if err := c.conn.QueryRow(ctx, query).Scan(&lost, &more); err != nil {
		return err
	}
	c.wrong(&c.b.report.Lost, int(lost), "rows of %s are in the old table alone, of shards %s", name, strings.Join(different, ", "))
	c.wrong(&c.b.report.Doubled, int(more), "rows of %s are in shards %s alone", name, strings.Join(different, ", "))
	return nil
}
