package checks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// A function of a weaker role is found wherever a row that is written calls it, and not elsewhere.
func TestRightsOnLoan(t *testing.T) {
	t.Parallel()
	host := connect(t, shardtest.Hosts(t, 1)[0].ConnString(), "search_path", "pg_catalog")
	host.shard()
	role, user := "weak_"+host.text(`select current_database()`), host.text(`select current_user`)
	modern := host.number(`select current_setting('server_version_num')::int`) >= 160000
	weak := fmt.Sprintf(`create role %[1]s; grant usage on schema shard_00001 to %[1]s;
		create function public.ok(bigint) returns bool language plpgsql immutable as 'begin return true; end'; alter function public.ok(bigint) owner to %[1]s;
		create function public.same(bigint) returns bigint language plpgsql immutable as 'begin return $1; end'; alter function public.same(bigint) owner to %[1]s;
		create function public.far(bigint, bigint) returns float8 language plpgsql immutable as 'begin return 1; end'; alter function public.far(bigint, bigint) owner to %[1]s;
		create function public.equals(bigint, bigint) returns bool language plpgsql immutable as 'begin return $1 = $2; end'; alter function public.equals(bigint, bigint) owner to %[1]s;
		create operator public.=== (function = public.equals, leftarg = bigint, rightarg = bigint);
		create domain public.positive as bigint check (public.ok(value)); create type public.pair as (a int, b public.positive[]); `, role)
	for _, tt := range []struct{ name, change, caller, function string }{
		{"a constraint", `alter table shard_00001.photos add constraint c check (public.ok(id))`, "constraint c on table shard_00001.photos", "public.ok(bigint)"},
		{"an operator", `alter table shard_00001.photos add constraint c check (id operator(public.===) id)`, "constraint c on table shard_00001.photos", "public.equals(bigint,bigint)"},
		{"a domain of another schema", `alter table shard_00001.photos add n public.positive`, "constraint positive_check", "public.ok(bigint)"},
		{"a domain in an array in a row", `alter table shard_00001.photos add n public.pair[]`, "constraint positive_check", "public.ok(bigint)"},
		{"a generated column", `alter table shard_00001.photos add n bigint generated always as (public.same(id)) stored`, "default value for column n of table shard_00001.photos", "public.same(bigint)"},
		{"an index", `create index i on shard_00001.photos (public.same(id))`, "index shard_00001.i", "public.same(bigint)"},
		{"an index of an unlogged table", `create unlogged table shard_00001.u (id bigint); create index i on shard_00001.u (id) where public.ok(id)`, "index shard_00001.i", "public.ok(bigint)"},
		{"partitions", `create table shard_00001.p (id bigint) partition by list (public.same(id))`, "table shard_00001.p", "public.same(bigint)"},
		{"a range", `create type shard_00001.span as range (subtype = bigint, subtype_diff = public.far); alter table shard_00001.photos add n shard_00001.span`, "type shard_00001.span", "public.far(bigint,bigint)"},
		{"what has its owner's rights", `alter function public.ok(bigint) security definer; alter table shard_00001.photos add constraint c check (public.ok(id))`, "", ""},
		{"a superuser's", `alter function public.ok(bigint) owner to current_user; alter table shard_00001.photos add constraint c check (public.ok(id))`, "", ""},
		{"a role's that may do as much", fmt.Sprintf(`alter role %s superuser; alter table shard_00001.photos add constraint c check (public.ok(id))`, role), "", ""},
		{"what no row calls", `alter table shard_00001.photos add n bigint default public.same(1); create view shard_00001.v as select public.ok(id) from shard_00001.photos`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host := session{t, host.Conn}
			host.exec("begin; " + weak + tt.change)
			for _, offline := range []bool{false, true} {
				want := ""
				if tt.function != "" && !(tt.name == "an index" && modern && !offline) {
					want = fmt.Sprintf("%s calls %s for each row, which belongs to role \"%s\" and would run with the rights of role \"%s\": expected it to be SECURITY DEFINER, or to belong to \"%[4]s\" or a superuser",
						tt.caller, tt.function, role, user)
				}
				var got []string
				for _, problem := range host.onTarget(host.onSource(offline), offline).Problems {
					if strings.Contains(problem, "would run with the rights") {
						got = append(got, problem)
					}
				}
				if strings.Join(got, "\n") != want {
					t.Errorf("offline %t: got\n\t%s\nexpected\n\t%s", offline, strings.Join(got, "\n\t"), want)
				}
			}
			host.exec("rollback")
		})
	}
}
