package drift

import "strings"

// head names the shards that a query is about, and their relations without the toolkit's own. Its parameters:
//
//	$1 names of schemas, $2 the numbers that go with them
//	$3 relations of the toolkit's, $4 its functions
const head = `
	WITH shard AS MATERIALIZED (
		SELECT n.oid, u.name, u.number
		FROM unnest($1::text[], $2::int[]) u (name, number) JOIN pg_namespace n ON n.nspname = u.name
	), rel AS MATERIALIZED (
		SELECT c.oid, c.relnamespace, c.relname, c.relkind, c.relpersistence, c.relam, c.reltype, c.reloftype, c.reltoastrelid,
			c.relispartition, c.relispopulated, c.relpartbound, c.relreplident, c.relrowsecurity, c.relforcerowsecurity, c.reloptions,
			s.name || '.' || quote_ident(c.relname) AS name
		FROM pg_class c JOIN shard s ON s.oid = c.relnamespace
		WHERE c.relname <> ALL ($3::name[])
	), owned AS MATERIALIZED ( -- sequences of columns
		SELECT q.seqrelid, d.refobjid, d.refobjsubid, d.deptype FROM pg_sequence q
		JOIN pg_depend d ON d.objid = q.seqrelid AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
		WHERE d.refobjsubid > 0 AND d.deptype IN ('a', 'i')
	), line (schema, rank, class, object, part, key, text) AS (
`

// Each of the parts yields one line for each thing: the OID of the schema, the rank among what is made of
// the schema, the thing itself as pg_depend has it (with a negative number for what is no object of its own), a
// key by which the same thing is found in another shard, and the statement.

// parts are all but those of [lockingParts].
var parts = []string{
	enumPart, domainPart, compositePart, rangePart, baseTypePart,
	sequencePart, ownedSequencePart,
	tablePart, rowSecurityPart, replicaIdentityPart, columnPart,
	constraintPart, domainConstraintPart, disabledConstraintPart, indexPart, statisticsPart,
	functionPart, aggregatePart, triggerPart,
	relationCommentPart, constraintCommentPart, functionCommentPart, typeCommentPart, triggerCommentPart, schemaCommentPart,
	otherPart,
}

// lockingParts are what Postgres locks tables for until the transaction ends, when it writes them down. They are
// asked for by their OIDs in $5, of the catalog in $6.
var lockingParts = []string{viewPart, rulePart, policyPart, atomicFunctionPart}

// lines returns the query's part that yields all lines.
func lines(parts []string) string { return head + strings.Join(parts, " UNION ALL ") + ")" }

// normal are the lines with the schema's name replaced.
const normal = `, normal AS (
		SELECT s.name, s.number::text AS number, l.rank, l.class, l.object, l.part, l.key,
			replace(l.text, s.name, '` + schemaMark + `') AS text
		FROM line l JOIN shard s ON s.oid = l.schema
	)`

// hashed are the hashes of the lines: of the line as it is, and with the shard's number replaced.
const hashed = normal + `, hashed AS (
		SELECT name, class, object, sha256(convert_to(text, 'UTF8')) AS plain,
			CASE WHEN position(number IN text) = 0 THEN sha256(convert_to(text, 'UTF8'))
				ELSE sha256(convert_to(regexp_replace(text, '(?<![0-9])' || number || '(?![0-9])', '` + numberMark + `', 'g'), 'UTF8'))
			END AS numbered
		FROM normal
	)`
