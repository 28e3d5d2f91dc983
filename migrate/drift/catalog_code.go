package drift

// Types, functions, views and comments.

const enumPart = `
	SELECT ty.typnamespace, 5, 'pg_type'::regclass, ty.oid, 0, 'type ' || ty.oid::regtype,
		format('CREATE TYPE %s AS ENUM (%s)', ty.oid::regtype, (SELECT string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = ty.oid))
	FROM pg_type ty JOIN shard s ON s.oid = ty.typnamespace WHERE ty.typtype = 'e'`

const domainPart = `
	SELECT ty.typnamespace, 5, 'pg_type'::regclass, ty.oid, 0, 'type ' || ty.oid::regtype,
		concat(format('CREATE DOMAIN %s AS %s', ty.oid::regtype, format_type(ty.typbasetype, ty.typtypmod)),
			CASE WHEN ty.typcollation <> base.typcollation THEN format(' COLLATE %s.%I', co.collnamespace::regnamespace, co.collname) END,
			' DEFAULT ' || pg_get_expr(ty.typdefaultbin, 0), CASE WHEN ty.typnotnull THEN ' NOT NULL' END)
	FROM pg_type ty JOIN shard s ON s.oid = ty.typnamespace JOIN pg_type base ON base.oid = ty.typbasetype
	LEFT JOIN pg_collation co ON co.oid = ty.typcollation
	WHERE ty.typtype = 'd'`

const compositePart = `
	SELECT t.relnamespace, 5, 'pg_type'::regclass, t.reltype, 0, 'type ' || t.name,
		format('CREATE TYPE %s AS (%s)', t.name, (
			SELECT string_agg(concat(quote_ident(a.attname), ' ', format_type(a.atttypid, a.atttypmod),
				CASE WHEN a.attcollation <> ty.typcollation THEN format(' COLLATE %s.%I', co.collnamespace::regnamespace, co.collname) END), ', ' ORDER BY a.attnum)
			FROM pg_attribute a JOIN pg_type ty ON ty.oid = a.atttypid LEFT JOIN pg_collation co ON co.oid = a.attcollation
			WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped))
	FROM rel t WHERE t.relkind = 'c'`

const rangePart = `
	SELECT ty.typnamespace, 5, 'pg_type'::regclass, ty.oid, 0, 'type ' || ty.oid::regtype,
		concat(format('CREATE TYPE %s AS RANGE (SUBTYPE = %s, SUBTYPE_OPCLASS = %s.%I', ty.oid::regtype, format_type(r.rngsubtype, NULL), oc.opcnamespace::regnamespace, oc.opcname),
			', COLLATION = ' || co.collnamespace::regnamespace || '.' || quote_ident(co.collname),
			', CANONICAL = ' || nullif(r.rngcanonical, 0)::regproc, ', SUBTYPE_DIFF = ' || nullif(r.rngsubdiff, 0)::regproc,
			', MULTIRANGE_TYPE_NAME = ' || r.rngmultitypid::regtype, ')')
	FROM pg_type ty JOIN shard s ON s.oid = ty.typnamespace JOIN pg_range r ON r.rngtypid = ty.oid
	JOIN pg_opclass oc ON oc.oid = r.rngsubopc LEFT JOIN pg_collation co ON co.oid = r.rngcollation`

const baseTypePart = `
	SELECT ty.typnamespace, 5, 'pg_type'::regclass, ty.oid, 0, 'type ' || ty.oid::regtype, format('/* type %s */', ty.oid::regtype)
	FROM pg_type ty JOIN shard s ON s.oid = ty.typnamespace WHERE ty.typtype = 'b' AND ty.typelem = 0`

// The functions that come with a range type are left out.
const functionPart = `
	SELECT p.pronamespace, 25, 'pg_proc'::regclass, p.oid, 0, 'function ' || p.oid::regprocedure, rtrim(pg_get_functiondef(p.oid), E'\n')
	FROM pg_proc p JOIN shard s ON s.oid = p.pronamespace
	WHERE p.prokind IN ('f', 'p', 'w') AND p.prosqlbody IS NULL AND p.proname <> ALL ($4::name[])
		AND p.prosrc !~ '^(multi)?range_constructor[0-9]$'`

const atomicFunctionPart = `
	SELECT p.pronamespace, 66, 'pg_proc'::regclass, p.oid, 0, 'function ' || p.oid::regprocedure, rtrim(pg_get_functiondef(p.oid), E'\n')
	FROM pg_proc p JOIN shard s ON s.oid = p.pronamespace
	WHERE p.prosqlbody IS NOT NULL AND p.proname <> ALL ($4::name[]) AND p.oid = ANY ($5::oid[]) AND $6::oid = 'pg_proc'::regclass`

const aggregatePart = `
	SELECT p.pronamespace, 95, 'pg_proc'::regclass, p.oid, 0, 'aggregate ' || p.oid::regprocedure,
		format('/* aggregate %s: %s on %s, then %s */', p.oid::regprocedure, a.aggtransfn, format_type(a.aggtranstype, NULL), a.aggfinalfn)
	FROM pg_proc p JOIN shard s ON s.oid = p.pronamespace JOIN pg_aggregate a ON a.aggfnoid = p.oid`

const viewPart = `
	SELECT t.relnamespace, 65, 'pg_class'::regclass, t.oid, 0, 'view ' || t.name,
		concat('CREATE ', CASE t.relkind WHEN 'm' THEN 'MATERIALIZED ' END, 'VIEW ', t.name,
			' WITH (' || array_to_string(t.reloptions, ', ') || ')', ' AS', E'\n', rtrim(pg_get_viewdef(t.oid), ';'),
			CASE WHEN t.relkind = 'm' AND NOT t.relispopulated THEN ' WITH NO DATA' END)
	FROM rel t
	WHERE t.relkind IN ('v', 'm') AND t.oid = ANY ($5::oid[]) AND $6::oid = 'pg_class'::regclass`

// What a view's query says of its columns is part of the view's line.
const viewColumnPart = `
	SELECT c.relnamespace, 67, 'pg_class'::regclass, c.oid, c.attnum, format('settings of %s.%I', c.name, c.attname), substr(c.settings, 3)
	FROM (
		SELECT t.relnamespace, t.oid, t.name, a.attnum, a.attname,
			concat(format('; ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ', t.name, a.attname) || pg_get_expr(d.adbin, 0), ` + columnSettings + `) AS settings
		FROM rel t
		JOIN pg_attribute a ON a.attrelid = t.oid
		JOIN pg_type ty ON ty.oid = a.atttypid
		LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE t.relkind IN ('v', 'm') AND a.attnum > 0
	) c
	WHERE c.settings <> ''`

const relationCommentPart = `
	SELECT t.relnamespace, CASE WHEN t.relkind IN ('i', 'I') THEN 91 ELSE 90 END, 'pg_description'::regclass, t.oid, -100 - d.objsubid, format('comment on %s', concat_ws('.', t.name, quote_ident(a.attname))),
		format('COMMENT ON %s %s IS %L', CASE WHEN d.objsubid > 0 THEN 'COLUMN' ELSE CASE t.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
			WHEN 'S' THEN 'SEQUENCE' WHEN 'i' THEN 'INDEX' WHEN 'I' THEN 'INDEX' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END END,
			concat_ws('.', t.name, quote_ident(a.attname)), d.description)
	FROM pg_description d JOIN rel t ON t.oid = d.objoid
	LEFT JOIN pg_attribute a ON a.attrelid = d.objoid AND a.attnum = d.objsubid AND d.objsubid > 0
	WHERE d.classoid = 'pg_class'::regclass`

const constraintCommentPart = `
	SELECT con.connamespace, 91, 'pg_description'::regclass, con.oid, -1, format('comment on constraint %I on %s', con.conname, coalesce(t.name, con.contypid::regtype::text)),
		format('COMMENT ON CONSTRAINT %I ON %s%s IS %L', con.conname, CASE WHEN t.oid IS NULL THEN 'DOMAIN ' END, coalesce(t.name, con.contypid::regtype::text), d.description)
	FROM pg_description d JOIN pg_constraint con ON con.oid = d.objoid JOIN shard s ON s.oid = con.connamespace LEFT JOIN rel t ON t.oid = con.conrelid
	WHERE d.classoid = 'pg_constraint'::regclass AND (t.oid IS NOT NULL OR con.contypid <> 0)`

const functionCommentPart = `
	SELECT p.pronamespace, 90, 'pg_description'::regclass, p.oid, -2, 'comment on ' || p.oid::regprocedure,
		format('COMMENT ON %s %s IS %L', CASE p.prokind WHEN 'a' THEN 'AGGREGATE' WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, p.oid::regprocedure, d.description)
	FROM pg_description d JOIN pg_proc p ON p.oid = d.objoid JOIN shard s ON s.oid = p.pronamespace
	WHERE d.classoid = 'pg_proc'::regclass AND p.proname <> ALL ($4::name[])`

const typeCommentPart = `
	SELECT ty.typnamespace, 90, 'pg_description'::regclass, ty.oid, -3, 'comment on ' || ty.oid::regtype,
		format('COMMENT ON %s %s IS %L', CASE ty.typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, ty.oid::regtype, d.description)
	FROM pg_description d JOIN pg_type ty ON ty.oid = d.objoid JOIN shard s ON s.oid = ty.typnamespace
	WHERE d.classoid = 'pg_type'::regclass`

const triggerCommentPart = `
	SELECT t.relnamespace, 90, 'pg_description'::regclass, d.objoid, -4, format('comment on %I on %s', coalesce(tg.tgname, p.polname, r.rulename), t.name),
		format('COMMENT ON %s %I ON %s IS %L', CASE WHEN tg.oid IS NOT NULL THEN 'TRIGGER' WHEN p.oid IS NOT NULL THEN 'POLICY' ELSE 'RULE' END,
			coalesce(tg.tgname, p.polname, r.rulename), t.name, d.description)
	FROM pg_description d
	LEFT JOIN pg_trigger tg ON tg.oid = d.objoid AND d.classoid = 'pg_trigger'::regclass
	LEFT JOIN pg_policy p ON p.oid = d.objoid AND d.classoid = 'pg_policy'::regclass
	LEFT JOIN pg_rewrite r ON r.oid = d.objoid AND d.classoid = 'pg_rewrite'::regclass
	JOIN rel t ON t.oid = coalesce(tg.tgrelid, p.polrelid, r.ev_class)
	WHERE d.classoid IN ('pg_trigger'::regclass, 'pg_policy'::regclass, 'pg_rewrite'::regclass)`

const statisticsCommentPart = `
	SELECT st.stxnamespace, 90, 'pg_description'::regclass, st.oid, -6, format('comment on statistics %I.%I', s.name, st.stxname),
		format('COMMENT ON STATISTICS %I.%I IS %L', s.name, st.stxname, d.description)
	FROM pg_description d JOIN pg_statistic_ext st ON st.oid = d.objoid JOIN shard s ON s.oid = st.stxnamespace
	WHERE d.classoid = 'pg_statistic_ext'::regclass`

const schemaCommentPart = `
	SELECT s.oid, 90, 'pg_description'::regclass, s.oid, -5, 'comment on schema', format('COMMENT ON SCHEMA %I IS %L', s.name, d.description)
	FROM pg_description d JOIN shard s ON s.oid = d.objoid
	WHERE d.classoid = 'pg_namespace'::regclass`

// otherPart are objects for which no statement is written.
const otherPart = `
	SELECT o.schema, 95, o.class, o.oid, 0, pg_describe_object(o.class, o.oid, 0), format('/* %s */', pg_describe_object(o.class, o.oid, 0))
	FROM (
		SELECT oprnamespace, 'pg_operator'::regclass, oid FROM pg_operator UNION ALL
		SELECT collnamespace, 'pg_collation'::regclass, oid FROM pg_collation UNION ALL
		SELECT connamespace, 'pg_conversion'::regclass, oid FROM pg_conversion UNION ALL
		SELECT opcnamespace, 'pg_opclass'::regclass, oid FROM pg_opclass UNION ALL
		SELECT opfnamespace, 'pg_opfamily'::regclass, oid FROM pg_opfamily UNION ALL
		SELECT cfgnamespace, 'pg_ts_config'::regclass, oid FROM pg_ts_config UNION ALL
		SELECT dictnamespace, 'pg_ts_dict'::regclass, oid FROM pg_ts_dict UNION ALL
		SELECT prsnamespace, 'pg_ts_parser'::regclass, oid FROM pg_ts_parser UNION ALL
		SELECT tmplnamespace, 'pg_ts_template'::regclass, oid FROM pg_ts_template
	) o (schema, class, oid) JOIN shard s ON s.oid = o.schema`
