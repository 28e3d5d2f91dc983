package checks

import "github.com/kiloshard/kiloshard/sql"

// unvalidatedQuery finds constraints of domains that are NOT VALID. Such a constraint of a table stops no row: the
// source, too, refuses an update of a row that violates it. But the source accepts an update of another column of a row
// with a value that violates its domain. Its parameters: the schema, whether this is a problem, and the consequence.
const unvalidatedQuery = `
SELECT $2::boolean, format('constraint %s of domain %s is NOT VALID, so ' || $3::text, con.conname, t.typname)
FROM pg_constraint con JOIN pg_type t ON t.oid = con.contypid
WHERE con.connamespace = to_regnamespace($1) AND NOT con.convalidated AND coalesce(to_jsonb(con) ->> 'conenforced', 'true') = 'true' ORDER BY 2`

// bareNamesQuery finds calls of functions that the copy would not find on the target; see [sql.BareNamesQuery].
const bareNamesQuery = `
SELECT false, format('%s calls %s, which names %s without its schema: the copy would not find it on the target; expected the schema, or a search_path of the function''s own', caller, function, name)
FROM (` + sql.BareNamesQuery + `) b (caller, function, name)`
