package main

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// pair is a primary and its standby, of one script. They start when the script says: pair start
type pair struct {
	t                *testing.T
	primary, standby *localpg.Server
}

// command runs pair start, which sets PG_PAIR_DSN to a DSN with both addresses, PG_FIRST_DSN and PG_SECOND_DSN to DSNs with one; pair
// third, which starts another standby and sets PG_THIRD_DSN; pair wait, until the standbys have all that the primary has; pair kill, of the
// primary once the standby has that; pair promote, of the standby; pair restart, of the killed one; and pair freeze, of the standby.
func (p *pair) command(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: pair start|third|wait|kill|promote|restart|freeze")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	switch args[0] {
	case "start":
		p.start(ctx, ts)
	case "third":
		third := shardtest.Standby(p.t, p.primary, "third")
		u, err := url.Parse(third.DSN("app"))
		if err != nil {
			ts.Fatalf("a server's DSN is no URL")
		}
		ts.Setenv("PG_THIRD", u.Host)
		ts.Setenv("PG_THIRD_DSN", u.String())
		ts.Check(say(ctx, p.primary, until(`exists (select from pg_stat_replication where application_name = 'third' and state = 'streaming')`)))
	case "wait":
		ts.Check(say(ctx, p.primary, until(`(select bool_and(replay_lsn >= upto) from pg_stat_replication)`)))
	case "kill":
		ts.Check(say(ctx, p.primary, until(`exists (select from pg_stat_replication where replay_lsn >= upto)`)))
		ts.Check(p.primary.Kill(ctx))
	case "promote":
		ts.Check(say(ctx, p.standby, `select pg_promote()`))
	case "restart":
		ts.Check(p.primary.Restart(ctx))
	case "freeze":
		ts.Check(p.standby.Freeze(ctx))
	default:
		ts.Fatalf("pair %s: expected start, third, wait, kill, promote, restart or freeze", args[0])
	}
}

func (p *pair) start(ctx context.Context, ts *testscript.TestScript) {
	p.primary = shardtest.OwnServer(p.t)
	_, err := p.primary.CreateDatabase(ctx, "app")
	ts.Check(err)
	p.standby = shardtest.Standby(p.t, p.primary, "second")
	ts.Check(say(ctx, p.primary, until(`exists (select from pg_stat_replication where state = 'streaming')`)))

	first, err := url.Parse(p.primary.DSN("app"))
	if err != nil {
		ts.Fatalf("a server's DSN is no URL")
	}
	second, err := url.Parse(p.standby.DSN("app"))
	if err != nil {
		ts.Fatalf("a server's DSN is no URL")
	}
	ts.Setenv("PG_FIRST", first.Host)
	ts.Setenv("PG_SECOND", second.Host)
	ts.Setenv("PG_FIRST_DSN", first.String())
	ts.Setenv("PG_SECOND_DSN", second.String())
	first.Host += "," + second.Host
	ts.Setenv("PG_PAIR_DSN", first.String())
}

// until waits for what the standby has to come to; upto is where the primary's log ended when it began.
func until(condition string) string {
	return `do $$ declare upto pg_lsn := pg_current_wal_flush_lsn(); begin
		for i in 1..30000 loop
			if ` + condition + ` then return; end if;
			perform pg_stat_clear_snapshot(), pg_sleep(0.01);
		end loop;
		raise 'the standby is late';
	end $$`
}

func say(ctx context.Context, s *localpg.Server, sql string) error {
	conn, err := pgx.Connect(ctx, s.DSN("app"))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(ctx, sql)
	return err
}
