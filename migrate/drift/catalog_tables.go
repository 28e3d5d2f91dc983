package drift

// The CREATE TABLE of a partition has its bound, that of a child table its parents.
const tablePart = `
	SELECT t.relnamespace, 20, 'pg_class'::regclass, t.oid, 0, 'table ' || t.name,
		concat('CREATE ', CASE t.relpersistence WHEN 'u' THEN 'UNLOGGED ' END, CASE t.relkind WHEN 'f' THEN 'FOREIGN ' END,
			'TABLE ', t.name, ' OF ' || format_type(nullif(t.reloftype, 0), NULL),
			CASE WHEN t.relispartition THEN ' PARTITION OF ' || i.parents || ' ' || pg_get_expr(t.relpartbound, t.oid)
				ELSE ' ()' || coalesce(' INHERITS (' || i.parents || ')', '') END,
			CASE t.relkind WHEN 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(t.oid) END,
			' USING ' || quote_ident(nullif(am.amname, 'heap')),
			' WITH (' || array_to_string(t.reloptions, ', ') || ')')
	FROM rel t
	LEFT JOIN pg_am am ON am.oid = t.relam
	LEFT JOIN (
		SELECT inhrelid, string_agg(inhparent::regclass::text, ', ' ORDER BY inhseqno) FROM pg_inherits GROUP BY inhrelid
	) i (oid, parents) ON i.oid = t.oid
	WHERE t.relkind IN ('r', 'p', 'f')`

// A table gets its toast table with the first column that may need one, and keeps it when that is dropped: only a table that has such a
// column can be given options of one.
const toastPart = `
	SELECT t.relnamespace, 78, 'pg_class'::regclass, t.oid, -3, 'toast options of ' || t.name,
		format('ALTER TABLE %s SET (%s)', t.name, (SELECT string_agg('toast.' || o, ', ') FROM unnest(toast.reloptions) o))
	FROM rel t JOIN pg_class toast ON toast.oid = t.reltoastrelid
	WHERE toast.reloptions IS NOT NULL AND t.oid IN (SELECT attrelid FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attlen = -1 AND attstorage <> 'p')`

const rowSecurityPart = `
	SELECT t.relnamespace, 76, 'pg_class'::regclass, t.oid, -1, 'row security of ' || t.name,
		concat_ws('; ', CASE WHEN t.relrowsecurity THEN format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t.name) END,
			CASE WHEN t.relforcerowsecurity THEN format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', t.name) END)
	FROM rel t WHERE t.relkind IN ('r', 'p') AND (t.relrowsecurity OR t.relforcerowsecurity)`

// A table whose index was dropped has nothing to identify its rows by.
const replicaIdentityPart = `
	SELECT t.relnamespace, 77, 'pg_class'::regclass, t.oid, -2, 'replica identity of ' || t.name,
		format('ALTER TABLE %s REPLICA IDENTITY ', t.name) || CASE t.relreplident WHEN 'n' THEN 'NOTHING' WHEN 'f' THEN 'FULL'
			ELSE coalesce('USING INDEX ' || quote_ident(x.relname), 'NOTHING') END
	FROM rel t
	LEFT JOIN (pg_index i JOIN pg_class x ON x.oid = i.indexrelid) ON i.indrelid = t.oid AND i.indisreplident
	WHERE t.relkind IN ('r', 'p') AND t.relreplident <> 'd'`

// columnSettings are the statements that change a column once it is made. An option pg_... is Postgres's own: since 17.12 each column has a
// number, which is another one on each host, and which pg_dump leaves out, too.
const columnSettings = `concat(
			CASE WHEN a.attstorage <> ty.typstorage THEN format('; ALTER TABLE %s ALTER COLUMN %I SET STORAGE %s', t.name, a.attname,
				CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END) END,
			CASE WHEN a.attcompression <> '' THEN format('; ALTER TABLE %s ALTER COLUMN %I SET COMPRESSION %s', t.name, a.attname,
				CASE a.attcompression WHEN 'p' THEN 'pglz' ELSE 'lz4' END) END,
			CASE WHEN a.attstattarget >= 0 THEN format('; ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', t.name, a.attname, a.attstattarget) END,
			CASE WHEN a.attoptions IS NOT NULL THEN
				format('; ALTER TABLE %s ALTER COLUMN %I SET (', t.name, a.attname) || (SELECT string_agg(o, ', ' ORDER BY o) FROM unnest(a.attoptions) o WHERE o NOT LIKE 'pg\_%') || ')' END)`

// A column's position counts only columns that were not dropped. A default is deparsed without its table, which no
// default names: with the table, Postgres would open it. One that calls a function in SQL is set once the column is there:
// ADD COLUMN would read the function's body, which may name things by the search_path of those who insert rows.
const columnPart = `
	SELECT t.relnamespace, 30, 'pg_class'::regclass, t.oid, a.attnum, format('column %s.%I', t.name, a.attname),
		concat('ALTER TABLE ', t.name, ' ADD COLUMN ', quote_ident(a.attname), ' ', format_type(a.atttypid, a.atttypmod),
			CASE WHEN a.attcollation <> ty.typcollation THEN format(' COLLATE %s.%I', co.collnamespace::regnamespace, co.collname) END,
			CASE WHEN calls.sql THEN NULL WHEN a.attgenerated = '' THEN ' DEFAULT ' || pg_get_expr(d.adbin, 0)
				ELSE format(' GENERATED ALWAYS AS (%s) %s', pg_get_expr(d.adbin, d.adrelid), CASE a.attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL' END) END,
			CASE WHEN a.attidentity <> '' THEN format(' GENERATED %s AS IDENTITY (SEQUENCE NAME %s%s)',
				CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, q.name, CASE WHEN q.type = a.atttypid THEN ' ' || q.options END) END,
			CASE WHEN a.attnotnull THEN ' NOT NULL' END,
			CASE WHEN a.attidentity <> '' AND 'u' IN (t.relpersistence, q.persistence) THEN format('; ALTER SEQUENCE %s SET %s', q.name, CASE q.persistence WHEN 'u' THEN 'UNLOGGED' ELSE 'LOGGED' END) END,
			CASE WHEN q.type <> a.atttypid THEN format('; ALTER SEQUENCE %s AS %s %s RESTART', q.name, format_type(q.type, NULL), q.options) END,
			CASE WHEN calls.sql THEN format('; ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', t.name, a.attname, pg_get_expr(d.adbin, 0)) END,
			` + columnSettings + `,
			CASE WHEN NOT a.attislocal THEN ' /* inherited */' END,
			' /* column ', CASE WHEN gone.oid IS NULL THEN a.attnum ELSE a.attnum - (SELECT count(*) FROM unnest(gone.numbers) n WHERE n < a.attnum) END, ' */')
	FROM rel t
	JOIN pg_attribute a ON a.attrelid = t.oid
	JOIN pg_type ty ON ty.oid = a.atttypid
	LEFT JOIN pg_collation co ON co.oid = a.attcollation
	LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
	CROSS JOIN LATERAL (SELECT a.attgenerated = '' AND EXISTS (
		SELECT FROM pg_depend p JOIN pg_proc f ON f.oid = p.refobjid JOIN pg_language l ON l.oid = f.prolang AND l.lanname = 'sql'
		WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_proc'::regclass)) calls (sql)
	LEFT JOIN (SELECT attrelid, array_agg(attnum) FROM pg_attribute WHERE attisdropped GROUP BY attrelid) gone (oid, numbers) ON gone.oid = t.oid
	LEFT JOIN (
		SELECT o.refobjid, o.refobjsubid, c.name, c.relpersistence, s.seqtypid, ` + sequenceOptions + `
		FROM owned o JOIN pg_sequence s ON s.seqrelid = o.seqrelid JOIN rel c ON c.oid = o.seqrelid WHERE o.deptype = 'i'
	) q (oid, number, name, persistence, type, options) ON q.oid = t.oid AND q.number = a.attnum
	WHERE t.relkind IN ('r', 'p', 'f') AND a.attnum > 0 AND NOT a.attisdropped`

const sequenceOptions = `format('INCREMENT BY %s MINVALUE %s MAXVALUE %s START WITH %s CACHE %s %s',
	s.seqincrement, s.seqmin, s.seqmax, s.seqstart, s.seqcache, CASE WHEN s.seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END)`

const sequencePart = `
	SELECT c.relnamespace, 10, 'pg_class'::regclass, c.oid, 0, 'sequence ' || c.name,
		concat('CREATE ', CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED ' END, 'SEQUENCE ', c.name, ' AS ', format_type(s.seqtypid, NULL), ' ', ` + sequenceOptions + `)
	FROM rel c JOIN pg_sequence s ON s.seqrelid = c.oid
	LEFT JOIN owned o ON o.seqrelid = c.oid AND o.deptype = 'i'
	WHERE o.seqrelid IS NULL`

const ownedSequencePart = `
	SELECT c.relnamespace, 35, 'pg_class'::regclass, c.oid, -1, 'owner of ' || c.name,
		format('ALTER SEQUENCE %s OWNED BY %s.%I', c.name, o.refobjid::regclass, a.attname)
	FROM owned o JOIN rel c ON c.oid = o.seqrelid JOIN pg_attribute a ON a.attrelid = o.refobjid AND a.attnum = o.refobjsubid
	WHERE o.deptype = 'a'`
