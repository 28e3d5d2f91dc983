package structure_test

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/structure"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// wrong has tables that shards cannot have, each for one reason, and fine, which they can.
const wrong = `
	create table users (id bigint primary key, email text);
	create table fine (id bigint primary key, user_id bigint not null references users on delete cascade);
	create table parts (at date, user_id bigint references users, primary key (at, user_id)) partition by range (at);
	create table part partition of parts for values from ('2026-01-01') to ('2027-01-01');
	create table parent (id bigint primary key, user_id bigint references users);
	create table child (primary key (id), foreign key (user_id) references users) inherits (parent);
	create unlogged table cache (user_id bigint primary key references users);
	create type pair as (id bigint, user_id bigint);
	create table typed of pair (primary key (id), foreign key (user_id) references users);
	create table secret (id bigint primary key, user_id bigint references users);
	alter table secret enable row level security;
	create table ruled (id bigint primary key, user_id bigint references users);
	create rule nothing as on delete to ruled do instead nothing;
	create table keyless (id bigint, user_id bigint references users, unique (id));
	create table later (id bigint primary key deferrable, user_id bigint references users, n bigint not null unique);
	create table doubt (id bigint primary key, user_id bigint references users, n int);
	insert into users values (1);
	insert into doubt values (1, 1, -1);
	alter table doubt add constraint positive check (n > 0) not valid;
	create function act() returns trigger language plpgsql as 'begin return null; end';
	create table counted (id bigint primary key, user_id bigint references users on delete cascade);
	create trigger counts after delete on counted for each statement execute function act();
	create table loose (id bigint primary key, fine_id bigint);
	alter table loose add foreign key (fine_id) references fine not valid;
	create schema other;
	create table other.fine (id bigint primary key, user_id bigint references users);
`

// wrong18 has those that Postgres has from 18 on.
const wrong18 = `
	create table booked (room int4range, at daterange, user_id bigint references users, primary key (room, at without overlaps));
	create table stays (id bigint primary key, user_id bigint references users, room int4range, at daterange, foreign key (room, period at) references booked (room, period at));
	create table unsure (id bigint primary key, user_id bigint references users, fine_id bigint references fine on delete cascade not enforced);
	create table checked (id bigint primary key, user_id bigint references users, n int, constraint positive check (n > 0) not enforced);
`

func TestProblems(t *testing.T) {
	t.Parallel()
	host := shardtest.Hosts(t, 1)[0]
	conn := pgtest.Connect(t, host.ConnString())
	var modern bool
	if err := conn.QueryRow(t.Context(), `select current_setting('server_version_num')::int >= 180000`).Scan(&modern); err != nil {
		t.Fatal(err)
	}
	statements := wrong
	if modern {
		statements += wrong18
	}
	if _, err := pgtest.Run(t.Context(), conn, statements); err != nil {
		t.Fatal(err)
	}
	var set *structure.Set
	read := func(ctx context.Context, tx pgx.Tx, plan *adopt.Plan) (err error) {
		set, err = structure.Read(ctx, tx, plan, nil)
		return err
	}
	if _, err := adopt.Look(t.Context(), adopt.Config{Host: host, Key: "users.id"}, read); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range set.Problems {
		got[p.Table.String()] += "; " + p.Text
	}
	want := map[string]string{
		"public.parts":   "it is partitioned",
		"public.parent":  "it inherits, or others inherit from it",
		"public.child":   "it inherits, or others inherit from it",
		"public.cache":   "it is unlogged",
		"public.typed":   "it has a type",
		"public.secret":  "it has row security",
		"public.ruled":   "it has rules",
		"public.keyless": "no primary key, and no unique key of columns that are not null; expected one, by which rows are mirrored, not one WITHOUT OVERLAPS",
		"public.later":   "constraint later_pkey is deferrable",
		"public.doubt":   "constraint positive is not valid",
		"public.counted": "trigger counts fires once a statement",
		"public.loose":   "it reaches the key by loose_fine_id_fkey, which is no valid foreign key of the database",
		`"".""`:          `"fine" is in schemas other and public`,
	}
	if modern {
		maps.Copy(want, map[string]string{
			"public.booked":  "no primary key, and no unique key of columns that are not null",
			"public.stays":   "foreign key stays_room_at_fkey refers to a period",
			"public.unsure":  "foreign key unsure_fine_id_fkey is not enforced",
			"public.checked": "constraint positive is not valid; expected alter table … validate constraint, or drop constraint",
		})
	}
	for table, text := range want {
		if !strings.HasPrefix(got[table], "; "+text) {
			t.Errorf("%s: got %q, expected %q", table, strings.TrimPrefix(got[table], "; "), text)
		}
	}
	for table, text := range got {
		if want[table] == "" {
			t.Errorf("%s: got %q, expected nothing", table, text)
		}
	}
}
