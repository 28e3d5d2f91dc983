package migrate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// versionTable is tern's, in the schema of each shard.
const versionTable = "schema_version"

var errNoVersion = errors.New("its schema_version has no row: tern keeps one row in it")

// standing is where a shard stands: at a version, or why it stands at none.
type standing struct {
	version int32
	table   bool  // it has a version table; without one it stands at version 0
	err     error // [ErrNotCreated], or that its version table is broken
}

// standingsQuery asks for the versions of many shards at once, and answers with one text: for each
// schema its version, or why there is none.
//
// To read a table is to lock it and its index until the transaction ends, and what the server has
// room for are some thousand locks for all sessions together. So the tables are read in
// subtransactions which are rolled back, which keeps what was read and lets go of the locks.
const standingsQuery = `
do $kiloshard$
declare
	names    text[] := '{%s}';
	answers  text[];
	answer   text;
	current  int;
begin
	select array_agg(case when n.oid is null then 'no schema' when c.oid is null then 'no table' end order by u.i)
	into answers
	from unnest(names) with ordinality u(name, i)
	left join pg_catalog.pg_namespace n on n.nspname = u.name
	left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = 'schema_version' and c.relkind in ('r', 'p');

	for low in 1 .. cardinality(names) by 64 loop
		begin
			for i in low .. least(low + 63, cardinality(names)) loop
				if answers[i] is null then
					current := null;
					execute 'select version from ' || names[i] || '.schema_version' into current;
					answers[i] := coalesce(current::text, 'no row');
				end if;
			end loop;
			raise exception using errcode = 'KSV00';
		exception when sqlstate 'KSV00' then null;
		end;
	end loop;
	perform set_config('kiloshard.versions', array_to_string(answers, ','), true);
end $kiloshard$;
select current_setting('kiloshard.versions')`

// standings returns where shards of the session's host stand.
func (s *session) standings(ctx context.Context, m *shards.Map, numbers []shards.Number) (map[shards.Number]standing, error) {
	schemas := make([]string, len(numbers))
	for i, n := range numbers {
		schemas[i] = m.Schema(n)
	}
	text, err := s.value(ctx, fmt.Sprintf(standingsQuery, strings.Join(schemas, ",")))
	if err != nil {
		return nil, fmt.Errorf("versions of its shards: %w", err)
	}
	answers := strings.Split(text, ",")
	if len(answers) != len(numbers) {
		return nil, fmt.Errorf("versions of its shards: %d answers for %d shards", len(answers), len(numbers))
	}
	found := make(map[shards.Number]standing, len(numbers))
	for i, n := range numbers {
		if found[n], err = parseStanding(answers[i]); err != nil {
			return nil, fmt.Errorf("version of %s: %w", schemas[i], err)
		}
	}
	return found, nil
}

func parseStanding(answer string) (standing, error) {
	switch answer {
	case "no schema":
		return standing{err: ErrNotCreated}, nil
	case "no table":
		return standing{}, nil
	case "no row":
		return standing{table: true, err: errNoVersion}, nil
	}
	version, err := strconv.ParseUint(answer, 10, 31)
	return standing{version: int32(version), table: true}, err
}
