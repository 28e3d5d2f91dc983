package checks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// outsideQuery finds objects outside some schemas that depend on objects in them, by pg_depend; publications do not
// count. Such a view, function or foreign key would continue to use the renamed schema after the move: it would read
// old rows, and its writes would be lost.
const outsideQuery = `
WITH RECURSIVE inside (class, object) AS (
  SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid IN (SELECT oid FROM pg_namespace WHERE nspname = ANY ($1))
    AND classid IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass)
  UNION -- row types, array types and indexes depend on their tables and types, not on the schema
  SELECT d.classid, d.objid FROM inside i JOIN pg_depend d ON d.refclassid = i.class AND d.refobjid = i.object
  WHERE d.deptype IN ('a', 'i') AND d.classid IN ('pg_class'::regclass, 'pg_type'::regclass)
)
SELECT DISTINCT format('%s refers to %s', pg_describe_object(d.classid, d.objid, d.objsubid), pg_describe_object(d.refclassid, d.refobjid, 0))
FROM inside i JOIN pg_depend d ON d.refclassid = i.class AND d.refobjid = i.object AND d.deptype IN ('n', 'a')
CROSS JOIN LATERAL (SELECT CASE d.classid
  WHEN 'pg_class'::regclass THEN (SELECT relnamespace FROM pg_class WHERE oid = d.objid)
  WHEN 'pg_proc'::regclass THEN (SELECT pronamespace FROM pg_proc WHERE oid = d.objid)
  WHEN 'pg_type'::regclass THEN (SELECT typnamespace FROM pg_type WHERE oid = d.objid)
  WHEN 'pg_constraint'::regclass THEN (SELECT connamespace FROM pg_constraint WHERE oid = d.objid)
  WHEN 'pg_rewrite'::regclass THEN (SELECT c.relnamespace FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class WHERE r.oid = d.objid)
  WHEN 'pg_attrdef'::regclass THEN (SELECT c.relnamespace FROM pg_attrdef a JOIN pg_class c ON c.oid = a.adrelid WHERE a.oid = d.objid)
  WHEN 'pg_trigger'::regclass THEN (SELECT c.relnamespace FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid WHERE g.oid = d.objid)
  WHEN 'pg_policy'::regclass THEN (SELECT c.relnamespace FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE p.oid = d.objid)
  WHEN 'pg_statistic_ext'::regclass THEN (SELECT stxnamespace FROM pg_statistic_ext WHERE oid = d.objid)
  WHEN 'pg_operator'::regclass THEN (SELECT oprnamespace FROM pg_operator WHERE oid = d.objid)
  WHEN 'pg_opclass'::regclass THEN (SELECT opcnamespace FROM pg_opclass WHERE oid = d.objid)
  WHEN 'pg_amop'::regclass THEN (SELECT f.opfnamespace FROM pg_amop a JOIN pg_opfamily f ON f.oid = a.amopfamily WHERE a.oid = d.objid)
  WHEN 'pg_amproc'::regclass THEN (SELECT f.opfnamespace FROM pg_amproc a JOIN pg_opfamily f ON f.oid = a.amprocfamily WHERE a.oid = d.objid)
  END) o (schema)
LEFT JOIN pg_namespace n ON n.oid = o.schema
WHERE d.classid NOT IN ('pg_publication_rel'::regclass, 'pg_publication_namespace'::regclass)
  AND (n.oid IS NULL OR n.nspname <> ALL ($1) AND n.nspname <> 'pg_toast' AND n.nspname !~ ('^' || ($1)[1] || '__fence_[0-9a-f]{8}$')) ORDER BY 1`

// Outside describes objects outside some schemas that depend on objects in them. A fence that is not up yet does not count.
func Outside(ctx context.Context, conn *pgx.Conn, schemas ...string) ([]string, error) {
	return session.Texts(ctx, conn, outsideQuery, schemas)
}

// outside finds objects outside the shard that depend on its objects.
func (s *Shard) outside(ctx context.Context, conn *pgx.Conn) error {
	found, err := Outside(ctx, conn, s.Schema)
	for _, what := range found {
		s.problem("%s: it would stay with the old rows; expected nothing outside the schema to refer to it", what)
	}
	return err
}
