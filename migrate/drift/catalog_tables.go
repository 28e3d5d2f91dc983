package drift

// The CREATE TABLE of a child table has its parents, which have no columns yet. A partitioned table has its columns, since its key is of
// them; a partition is made as a table of its own, and then attached.
var tablePart = `
	SELECT t.relnamespace, 20, 'pg_class'::regclass, t.oid, 0, 'table ' || t.name,
		concat('CREATE ', CASE t.relpersistence WHEN 'u' THEN 'UNLOGGED ' END, CASE t.relkind WHEN 'f' THEN 'FOREIGN ' END,
			'TABLE ', t.name, ' OF ' || format_type(nullif(t.reloftype, 0), NULL), ' (' || c.columns || ')', CASE WHEN t.relkind <> 'p' THEN ' ()' END,
			CASE WHEN NOT t.relispartition THEN ' INHERITS (' || i.parents || ')' END,
			CASE t.relkind WHEN 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(t.oid) END,
			' USING ' || quote_ident(nullif(am.amname, 'heap')),
			' WITH (' || array_to_string(t.reloptions, ', ') || ')', ' /* its parent or child outside the schema: ' || ` + comment("o.names") + ` || ' */')
	FROM rel t
	LEFT JOIN pg_am am ON am.oid = t.relam
	LEFT JOIN (
		SELECT inhrelid, string_agg(inhparent::regclass::text, ', ' ORDER BY inhseqno) FROM pg_inherits GROUP BY inhrelid
	) i (oid, parents) ON i.oid = t.oid
	LEFT JOIN (
		SELECT r.oid, string_agg(r.other::regclass::text, ', ' ORDER BY r.other::regclass::text)
		FROM (SELECT inhrelid, inhparent FROM pg_inherits UNION ALL SELECT inhparent, inhrelid FROM pg_inherits) r (oid, other)
		JOIN rel one ON one.oid = r.oid JOIN pg_class two ON two.oid = r.other AND two.relnamespace <> one.relnamespace GROUP BY 1
	) o (oid, names) ON o.oid = t.oid
	LEFT JOIN (
		SELECT a.attrelid, string_agg(concat(quote_ident(a.attname), ' ', ` + columnType + `, ` + generated + `), ', ' ORDER BY a.attnum)
		FROM rel t JOIN pg_attribute a ON a.attrelid = t.oid JOIN pg_type ty ON ty.oid = a.atttypid LEFT JOIN pg_collation co ON co.oid = a.attcollation
		LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE t.relkind = 'p' AND a.attnum > 0 AND NOT a.attisdropped GROUP BY 1
	) c (oid, columns) ON c.oid = t.oid
	WHERE t.relkind IN ('r', 'p', 'f')`

// comment is a text that cannot end the comment that it is in.
func comment(text string) string {
	return `replace(replace(` + text + `, '*/', '* /'), '/*', '/ *')`
}

const attachPart = `
	SELECT t.relnamespace, 50, 'pg_class'::regclass, t.oid, -4, 'partition ' || t.name,
		format('ALTER TABLE ONLY %s ATTACH PARTITION %s %s', i.inhparent::regclass, t.name, pg_get_expr(t.relpartbound, t.oid))
	FROM rel t JOIN pg_inherits i ON i.inhrelid = t.oid
	WHERE t.relispartition AND t.relkind IN ('r', 'p', 'f')`

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
			CASE WHEN a.attstorage <> ty.typstorage THEN format('; ALTER TABLE ONLY %s ALTER COLUMN %I SET STORAGE %s', t.name, a.attname,
				CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END) END,
			CASE WHEN a.attcompression <> '' THEN format('; ALTER TABLE ONLY %s ALTER COLUMN %I SET COMPRESSION %s', t.name, a.attname,
				CASE a.attcompression WHEN 'p' THEN 'pglz' ELSE 'lz4' END) END,
			CASE WHEN a.attstattarget >= 0 THEN format('; ALTER TABLE ONLY %s ALTER COLUMN %I SET STATISTICS %s', t.name, a.attname, a.attstattarget) END,
			CASE WHEN a.attoptions IS NOT NULL THEN
				format('; ALTER TABLE ONLY %s ALTER COLUMN %I SET (', t.name, a.attname) || (SELECT string_agg(o, ', ' ORDER BY o) FROM unnest(a.attoptions) o WHERE o NOT LIKE 'pg\_%') || ')' END)`

// columnType and generated are parts of a column's definition.
const (
	columnType = `format_type(a.atttypid, a.atttypmod), CASE WHEN a.attcollation <> ty.typcollation THEN format(' COLLATE %s.%I', co.collnamespace::regnamespace, co.collname) END`
	generated  = `CASE WHEN a.attgenerated <> '' THEN format(' GENERATED ALWAYS AS (%s) %s', pg_get_expr(d.adbin, d.adrelid), CASE a.attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL' END) END`
)

// A column's position counts only columns that were not dropped. A default is deparsed without its table, which no
// default names: with the table, Postgres would open it. One that calls a function in SQL is set once the column is there:
// ADD COLUMN would read the function's body, which may name things by the search_path of those who insert rows. A column that comes
// from a parent, or with its partitioned table, is changed, not added. Since Postgres 17 a partition uses the identity of its parent.
var columnPart = `
	SELECT c.relnamespace, 30, 'pg_class'::regclass, c.oid, c.attnum, format('column %s.%I', c.name, c.attname), c.text
	FROM (
		SELECT t.relnamespace, t.oid, a.attnum, t.name, a.attname, CASE
			WHEN t.relkind = 'p' THEN substr(concat(own.change || ' SET DEFAULT ' || value.text, CASE WHEN a.attnotnull THEN own.change || ' SET NOT NULL' END, more.text), 3)
			WHEN NOT a.attislocal AND NOT t.relispartition THEN concat(
				CASE WHEN a.attgenerated <> '' THEN '/* inherited:' || ` + comment(generated) + ` || ' */'
					ELSE substr(own.change || coalesce(' SET DEFAULT ' || value.text, ' DROP DEFAULT'), 3) END,
				CASE WHEN a.attnotnull AND NOT up.required THEN CASE WHEN nn.oid IS NULL THEN own.change || ' SET NOT NULL'
					ELSE format('; ALTER TABLE ONLY %s ADD NOT NULL %I NO INHERIT', t.name, a.attname) END
					WHEN up.required AND NOT a.attnotnull THEN own.change || ' DROP NOT NULL' END,
				more.text, ' /* inherited */', place.text)
			ELSE concat('ALTER TABLE ', t.name, ' ADD COLUMN ', quote_ident(a.attname), ' ', ` + columnType + `, CASE WHEN NOT calls.sql THEN ' DEFAULT ' || value.text END, ` + generated + `,
				CASE WHEN a.attnotnull THEN ' NOT NULL' END, CASE WHEN nn.oid IS NOT NULL THEN ' NO INHERIT' END, CASE WHEN calls.sql THEN own.change || ' SET DEFAULT ' || value.text END, more.text, place.text) END AS text
		FROM rel t
		JOIN pg_attribute a ON a.attrelid = t.oid
		JOIN pg_type ty ON ty.oid = a.atttypid
		LEFT JOIN pg_collation co ON co.oid = a.attcollation
		LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		CROSS JOIN LATERAL (SELECT EXISTS (
			SELECT FROM pg_depend p JOIN pg_proc f ON f.oid = p.refobjid JOIN pg_language l ON l.oid = f.prolang AND l.lanname = 'sql'
			WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_proc'::regclass)) calls (sql)
		LEFT JOIN (
			SELECT r.oid, array_agg(a.attnum) FROM rel r JOIN pg_attribute a ON a.attrelid = r.oid WHERE a.attisdropped GROUP BY r.oid
		) gone (oid, numbers) ON gone.oid = t.oid
		LEFT JOIN (
			SELECT o.refobjid, o.refobjsubid, c.name, c.relpersistence, s.seqtypid, ` + sequenceOptions + `
			FROM owned o JOIN pg_sequence s ON s.seqrelid = o.seqrelid JOIN rel c ON c.oid = o.seqrelid WHERE o.deptype = 'i'
		) q (oid, number, name, persistence, type, options) ON q.oid = t.oid AND q.number = a.attnum
		LEFT JOIN pg_constraint nn ON nn.conrelid = t.oid AND nn.contype = 'n' AND nn.conkey = ARRAY[a.attnum] AND nn.connoinherit -- since Postgres 18
		LEFT JOIN (
			SELECT i.inhrelid, p.attname, bool_or(p.attnotnull AND NOT EXISTS (
				SELECT FROM pg_constraint n WHERE n.conrelid = p.attrelid AND n.contype = 'n' AND n.conkey = ARRAY[p.attnum] AND n.connoinherit))
			FROM pg_inherits i JOIN rel c ON c.oid = i.inhrelid AND c.relkind = 'r' JOIN pg_attribute p ON p.attrelid = i.inhparent AND p.attnum > 0 GROUP BY 1, 2
		) up (oid, name, required) ON up.oid = t.oid AND up.name = a.attname
		CROSS JOIN LATERAL (SELECT format('; ALTER TABLE ONLY %s ALTER COLUMN %I', t.name, a.attname)) own (change)
		CROSS JOIN LATERAL (SELECT CASE a.attgenerated WHEN '' THEN pg_get_expr(d.adbin, 0) END) value (text)
		CROSS JOIN LATERAL (SELECT format(' /* column %s */', a.attnum - (SELECT count(*) FROM unnest(gone.numbers) n WHERE n < a.attnum))) place (text)
		CROSS JOIN LATERAL (SELECT concat(
			CASE WHEN q.oid IS NOT NULL THEN format('; ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s%s)', t.name, a.attname, CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
				q.name, CASE WHEN q.type = a.atttypid THEN ' ' || q.options END) END,
			CASE WHEN q.oid IS NOT NULL AND 'u' IN (t.relpersistence, q.persistence) THEN format('; ALTER SEQUENCE %s SET %s', q.name, CASE q.persistence WHEN 'u' THEN 'UNLOGGED' ELSE 'LOGGED' END) END,
			CASE WHEN q.type <> a.atttypid THEN format('; ALTER SEQUENCE %s AS %s %s RESTART', q.name, format_type(q.type, NULL), q.options) END,
			` + columnSettings + `)) more (text)
		WHERE t.relkind IN ('r', 'p', 'f') AND a.attnum > 0 AND NOT a.attisdropped
	) c
	WHERE c.text <> ''`

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
