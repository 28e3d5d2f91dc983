package drift

import "strings"

// head selects the shards of a query, and their relations except Kiloshard's own. Its parameters:
//
//	$1 names of schemas, $2 the numbers that go with them
//	$3 Kiloshard's relations, $4 its functions
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

// Each part returns one line per object: the OID of the schema, the rank in the usual order of creation, the object as in
// pg_depend (with a negative part for a property that is not an object), a key that identifies the object in other shards,
// and the statement.

// parts are all parts except [lockingParts].
var parts = []string{
	enumPart, domainPart, compositePart, rangePart, baseTypePart,
	sequencePart, ownedSequencePart,
	tablePart, attachPart, toastPart, rowSecurityPart, replicaIdentityPart, columnPart,
	constraintPart, domainConstraintPart, disabledConstraintPart, indexPart, attachIndexPart, statisticsPart,
	functionPart, aggregatePart, triggerPart, viewColumnPart,
	relationCommentPart, constraintCommentPart, functionCommentPart, typeCommentPart, triggerCommentPart, statisticsCommentPart, schemaCommentPart,
	otherPart,
}

// lockingParts are objects for which Postgres locks tables until the transaction ends when it deparses them. Their OIDs are
// $5, their catalog is $6.
var lockingParts = []string{viewPart, rulePart, policyPart, atomicFunctionPart}

// lines returns the query's part that yields all lines.
func lines(parts []string) string { return head + strings.Join(parts, " UNION ALL ") + ")" }

// normal are the lines with marks.
var normal = `, normal AS (
		SELECT s.name, s.number::text AS number, l.rank, l.class, l.object, l.part, ` + marked("l.key") + ` AS key, ` + marked("l.text") + ` AS text
		FROM line l JOIN shard s ON s.oid = l.schema
	)`

// marked replaces the schema's name in a text by its mark. What only looks like a mark is marked itself.
func marked(text string) string {
	return `replace(replace(` + text + `, '{{', '` + braceMark + `'), s.name, '` + schemaMark + `')`
}

// hashed are the hashes of the lines: as they are, and with the shard's number replaced.
var hashed = normal + `, hashed AS (
		SELECT name, class, object, sha256(convert_to(text, 'UTF8')) AS plain,
			CASE WHEN position(number IN text) = 0 THEN sha256(convert_to(text, 'UTF8'))
				ELSE sha256(convert_to(regexp_replace(text, '(?<![0-9])' || number || '(?![0-9])', '` + numberMark + `', 'g'), 'UTF8'))
			END AS numbered
		FROM normal
	)`
