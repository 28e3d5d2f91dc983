package drift

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// unknown is the version of a shard whose schema_version cannot be read.
const unknown int32 = -1

// versionsQuery asks for the versions of many shards at once, and answers with one text; a shard without
// a version table is at version 0. The tables are read in subtransactions which are rolled back, 64 at a time, since
// the locks of thousands of tables are more than a server has room for.
const versionsQuery = `
do $kiloshard$
declare
	names    text[] := '{%s}';
	answers  int[];
	found    int;
begin
	select array_agg(case when c.oid is null then 0 end order by u.i) into answers
	from unnest(names) with ordinality u(name, i)
	left join pg_catalog.pg_namespace n on n.nspname = u.name
	left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = 'schema_version' and c.relkind in ('r', 'p');

	for low in 1 .. cardinality(names) by 64 loop
		begin
			for i in low .. least(low + 63, cardinality(names)) loop
				if answers[i] is null then
					begin
						execute 'select version from ' || names[i] || '.schema_version' into strict found;
						answers[i] := found;
					exception when others then null;
					end;
				end if;
			end loop;
			raise exception using errcode = 'KSV00';
		exception when sqlstate 'KSV00' then null;
		end;
	end loop;
	perform set_config('kiloshard.versions', array_to_string(answers, ',', '-1'), true);
end $kiloshard$;
select current_setting('kiloshard.versions')`

// versions returns the versions of the shards.
func (s *session) versions(ctx context.Context) (map[shards.Number]int32, error) {
	results, err := s.conn.PgConn().Exec(ctx, fmt.Sprintf(versionsQuery, strings.Join(s.schemas, ","))).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("versions of its shards: %w", err)
	}
	answers := strings.Split(string(results[len(results)-1].Rows[0][0]), ",")
	if len(answers) != len(s.schemas) {
		return nil, fmt.Errorf("versions of its shards: %d answers for %d shards", len(answers), len(s.schemas))
	}
	versions := map[shards.Number]int32{}
	for i, answer := range answers {
		version, err := strconv.ParseInt(answer, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("version of %s: %w", s.schemas[i], err)
		}
		versions[s.byName[s.schemas[i]]] = int32(version)
	}
	return versions, nil
}
