package checks

// leftQuery finds the parts of a schema that do not move with it.
const leftQuery = `
SELECT true, format('%s has a security label of %I, which would not come along: expected none', pg_describe_object(l.classoid, l.objoid, l.objsubid), l.provider)
  FROM pg_seclabel l, pg_identify_object(l.classoid, l.objoid, l.objsubid) o WHERE $1 = o.schema OR o.type = 'schema' AND o.identity = quote_ident($1)
UNION ALL
SELECT false, format('%I is in tablespace %I: on the target it comes to the default one of the database', relname, spcname)
  FROM pg_class c JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE c.relnamespace = to_regnamespace($1)
UNION ALL
SELECT false, format('publication %I has tables of the shard: its subscribers hear nothing of them after the move', p.pubname)
  FROM pg_publication p WHERE p.pubname !~ '^kiloshard_' AND (p.puballtables OR EXISTS (
    SELECT FROM pg_publication_rel r JOIN pg_class c ON c.oid = r.prrelid WHERE r.prpubid = p.oid AND c.relnamespace = to_regnamespace($1))
    OR EXISTS (SELECT FROM pg_publication_namespace n WHERE n.pnpubid = p.oid AND n.pnnspid = to_regnamespace($1)))
UNION ALL
SELECT false, format('%s depends on extension %I: on the target it does not', pg_describe_object(d.classid, d.objid, 0), e.extname)
  FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid, pg_identify_object(d.classid, d.objid, 0) o
  WHERE d.deptype = 'x' AND o.schema = $1
UNION ALL
SELECT DISTINCT false, format('role %I has granted rights on %s: on the target they come from its owner', pg_get_userbyid(a.grantor), pg_describe_object(g.class, g.oid, 0))
  FROM (
    SELECT 'pg_namespace'::regclass, oid, nspowner, nspacl FROM pg_namespace WHERE nspname = $1
    UNION ALL SELECT 'pg_class'::regclass, oid, relowner, relacl FROM pg_class WHERE relnamespace = to_regnamespace($1)
    UNION ALL SELECT 'pg_class'::regclass, c.oid, relowner, attacl FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid WHERE c.relnamespace = to_regnamespace($1)
    UNION ALL SELECT 'pg_proc'::regclass, oid, proowner, proacl FROM pg_proc WHERE pronamespace = to_regnamespace($1)
    UNION ALL SELECT 'pg_type'::regclass, oid, typowner, typacl FROM pg_type WHERE typnamespace = to_regnamespace($1)
  ) g (class, oid, owner, acl), aclexplode(g.acl) a WHERE a.grantor <> g.owner
UNION ALL
SELECT false, format('the comment on %s stays behind: it belongs to what each shard has', pg_describe_object(d.classoid, d.objoid, d.objsubid))
  FROM pg_description d WHERE d.classoid = 'pg_class'::regclass AND d.objoid IN (
    SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relname IN ('next_id_seq', 'schema_version'))`
