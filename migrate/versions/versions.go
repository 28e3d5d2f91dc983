// Package versions reads the version tables of many shards, which are tern's, by one query.
package versions

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrNoRow says that a version table is empty.
var ErrNoRow = errors.New("its schema_version has no row: tern keeps one row in it")

// Version is what one schema says of its version.
type Version struct {
	Schema bool  // the schema exists
	Table  bool  // it has a version table; without one it is at version 0
	Number int32 // 0 or more
	Err    error // why the version table cannot be read: [ErrNoRow], or what the server said; then Number is 0
}

// setting is the one that the query leaves its answer in until the transaction ends.
const setting = "kiloshard.versions"

// Somebody else may have made the table: of a plain one, whose version is an int, nothing runs when it is read.
//
// To read a table is to lock it and its index until the transaction ends, and what the server has
// room for are some thousand locks for all sessions together. So the tables are read in
// subtransactions which are rolled back, which keeps what was read and lets go of the locks.
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
	select array_agg(case when n.oid is null then 'no schema' when c.oid is null then 'no table'
		when c.relkind <> 'r' or c.relrowsecurity or c.relhassubclass or a.attnum is null then 'error expected a plain table with a column version of type int4' end order by u.i)
	into answers
	from unnest(names) with ordinality u(name, i)
	left join pg_catalog.pg_namespace n on n.nspname = u.name
	left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = 'schema_version'
	left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'version' and a.atttypid = 'pg_catalog.int4'::regtype;

	for low in 1 .. cardinality(names) by 64 loop
		begin
			for i in low .. least(low + 63, cardinality(names)) loop
				if answers[i] is null then
					begin
						execute 'select version from ' || names[i] || '.schema_version' into strict answer;
						answers[i] := answer;
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

// Query returns SQL text that answers with one text, in the one row of its last statement, for [Parse]. The names are
// those of shards' schemas, which need no quotes. The text is to be run as one message, and changes nothing. It waits
// 30 s for a lock that somebody has on one of the tables, unless the session has a lock_timeout, and then fails (55P03).
func Query(schemas []string) string { return fmt.Sprintf(query, strings.Join(schemas, ",")) }

// Parse returns the versions in an answer, in the order of the schemas that were asked for.
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
