package checks

import "github.com/kiloshard/kiloshard/sql"

// unvalidatedQuery notes the constraints of domains that were never validated. Those of tables keep no row from its target: a change of one
// that violates them is refused by the source, too, but one of another column of a row with such a value of a domain is not. Its
// parameters: the schema, whether that is a problem, and for what.
const unvalidatedQuery = `
SELECT $2::boolean, format('constraint %s of domain %s is NOT VALID, so ' || $3::text, con.conname, t.typname)
FROM pg_constraint con JOIN pg_type t ON t.oid = con.contypid
WHERE con.connamespace = to_regnamespace($1) AND NOT con.convalidated AND coalesce(to_jsonb(con) ->> 'conenforced', 'true') = 'true' ORDER BY 2`

// bareNamesQuery notes the functions that rows written to the target would not find; see [sql.BareNamesQuery].
const bareNamesQuery = `
SELECT false, format('%s calls %s, which names %s without its schema: the copy would not find it on the target; expected the schema, or a search_path of the function''s own', caller, function, name)
FROM (` + sql.BareNamesQuery + `) b (caller, function, name)`
