// Package versions reads tern's version tables of many shards by one query.
package versions

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Table is the name of tern's version table in the schema of each shard.
const Table = "schema_version"

// ErrNoRow says that a version table is empty.
var ErrNoRow = errors.New("its schema_version has no row: tern keeps one row in it")

// Version is the migration version of one schema.
type Version struct {
	Schema bool  // the schema exists
	Table  bool  // it has a version table; without one it is at version 0
	Number int32 // 0 or more
	Err    error // why the version table cannot be read: [ErrNoRow], or the server's error; then Number is 0
}

// setting is the setting that holds the query's answer until the transaction ends.
const setting = "kiloshard.versions"

// Another role may have made the table, so the query reads it only if it is a plain table whose version is an int: reading
// that runs no code of its owner. It locks the table first, so that the owner cannot put another relation in its place.
//
// Reading a table locks it and its index until the transaction ends, and the server has room for a few thousand locks of
// all sessions together. So the query reads tables in subtransactions and rolls them back, which releases the locks but
// keeps the versions.
const query = `
do $kiloshard$
declare
	names    text[] := '{%s}';
	answers  text[];
	answer   int;
begin
	if current_setting('lock_timeout') = '0' then
		perform set_config('lock_timeout', '30s', true); -- of the whole message
	end if;
	select array_agg(case when n.oid is null then 'no schema' when c.oid is null then 'no table' end order by u.i) into answers
	from unnest(names) with ordinality u(name, i)
	left join pg_catalog.pg_namespace n on n.nspname = u.name
	left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = 'schema_version';

	for low in 1 .. cardinality(names) by 64 loop
		begin
			for i in low .. least(low + 63, cardinality(names)) loop
				if answers[i] is null then
					begin
						execute 'lock table ' || names[i] || '.schema_version in access share mode';
						if exists (select from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'version' and a.atttypid = 'pg_catalog.int4'::regtype
							where c.oid = to_regclass(names[i] || '.schema_version') and c.relkind = 'r' and not c.relrowsecurity and not c.relhassubclass) then
							execute 'select version from ' || names[i] || '.schema_version' into strict answer;
							answers[i] := answer;
						else
							answers[i] := 'error expected a plain table with a column version of type int4';
						end if;
					exception
						when no_data_found then answers[i] := 'no row';
						when lock_not_available then raise;
						when others then answers[i] := 'error ' || sqlerrm || ' (SQLSTATE ' || sqlstate || ')';
					end;
				end if;
			end loop;
			raise exception using errcode = 'KSV00';
		exception when sqlstate 'KSV00' then null;
		end;
	end loop;
	perform set_config('` + setting + `', array_to_json(answers)::text, true);
end $kiloshard$;
select current_setting('` + setting + `')`

// Query returns SQL whose last statement returns one row with one text, for [Parse]. schemas are names of shards' schemas,
// which need no quotes. Run it as one message. It changes nothing. It waits 30 s for a lock on one of the tables, unless the
// session has a lock_timeout, and then fails (55P03).
func Query(schemas []string) string { return fmt.Sprintf(query, strings.Join(schemas, ",")) }

// Parse returns the versions in an answer, in the order of the schemas.
func Parse(answer string, schemas []string) ([]Version, error) {
	var answers []string
	if err := json.Unmarshal([]byte(answer), &answers); err != nil {
		return nil, fmt.Errorf("the answer %q: %w", answer, err)
	}
	if len(answers) != len(schemas) {
		return nil, fmt.Errorf("%d answers for %d shards", len(answers), len(schemas))
	}
	found := make([]Version, len(answers))
	for i, text := range answers {
		var err error
		if found[i], err = parse(text); err != nil {
			return nil, fmt.Errorf("version of %s: %w", schemas[i], err)
		}
	}
	return found, nil
}

func parse(text string) (Version, error) {
	switch text {
	case "no schema":
		return Version{}, nil
	case "no table":
		return Version{Schema: true}, nil
	case "no row":
		return Version{Schema: true, Table: true, Err: ErrNoRow}, nil
	}
	if cause, ok := strings.CutPrefix(text, "error "); ok {
		return Version{Schema: true, Table: true, Err: fmt.Errorf("its schema_version cannot be read: %s", cause)}, nil
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return Version{}, err
	}
	if number < 0 {
		return Version{Schema: true, Table: true, Err: fmt.Errorf("its schema_version is at %d, which is not a version", number)}, nil
	}
	return Version{Schema: true, Table: true, Number: int32(number)}, nil
}
