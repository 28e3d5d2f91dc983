package drift

// Constraints, indexes, triggers, rules and policies.

// NOT NULL, a constraint since Postgres 18, is part of its column's line, unless it is not validated. A constraint of a partitioned table or
// of a parent makes those of its children, or takes the ones that are there as its own: a foreign key that a partition has by itself comes first.
// A foreign key to a partitioned table has others to its partitions, which come and go with these. A key of a partition is attached like an index.
const constraintPart = `
	SELECT t.relnamespace, CASE WHEN con.contype = 'f' THEN 55 WHEN con.contype IN ('p', 'u', 'x') THEN 51 ELSE 48 END, 'pg_constraint'::regclass, con.oid, 0, format('constraint %s.%I', t.name, con.conname),
		CASE WHEN given.oid IS NOT NULL THEN format('ALTER TABLE %s VALIDATE CONSTRAINT %I /* inherited */', t.name, con.conname)
			ELSE concat('ALTER TABLE ', CASE WHEN t.relkind = 'p' AND con.contype IN ('p', 'u', 'x') THEN 'ONLY ' END, t.name, ' ADD CONSTRAINT ', quote_ident(con.conname), ' ',
				pg_get_constraintdef(con.oid), CASE WHEN con.contype = 'f' AND con.conparentid <> 0 THEN ' /* inherited */' END) END
	FROM pg_constraint con JOIN rel t ON t.oid = con.conrelid
	LEFT JOIN (
		SELECT c.oid, bool_and(u.convalidated = c.convalidated) FROM pg_constraint c
		JOIN rel t ON t.oid = c.conrelid AND NOT t.relispartition JOIN pg_inherits i ON i.inhrelid = t.oid
		JOIN pg_constraint u ON u.conrelid = i.inhparent AND u.conname = c.conname AND u.contype = c.contype
		WHERE c.contype IN ('c', 'n') AND NOT c.conislocal GROUP BY 1
	) given (oid, alike) ON given.oid = con.oid
	LEFT JOIN pg_constraint up ON up.oid = con.conparentid
	WHERE (con.contype IN ('p', 'u', 'f', 'c', 'x') OR con.contype = 'n' AND NOT con.convalidated) AND given.alike IS NOT true AND up.conrelid IS DISTINCT FROM con.conrelid`

const domainConstraintPart = `
	SELECT ty.typnamespace, 26, 'pg_constraint'::regclass, con.oid, 0, format('constraint %s.%I', ty.oid::regtype, con.conname),
		format('ALTER DOMAIN %s ADD CONSTRAINT %I %s', ty.oid::regtype, con.conname, pg_get_constraintdef(con.oid))
	FROM pg_type ty JOIN shard s ON s.oid = ty.typnamespace JOIN pg_constraint con ON con.contypid = ty.oid AND con.contype = 'c'
	WHERE ty.typtype = 'd'`

// ALTER TABLE … DISABLE TRIGGER ALL switches foreign keys off.
const disabledConstraintPart = `
	SELECT t.relnamespace, 81, 'pg_trigger'::regclass, tg.oid, 0, format('triggers of constraint %s.%s', t.name, con.conname),
		format('/* triggers of constraint %s on %s: %s */', con.conname, t.name, CASE tg.tgenabled WHEN 'D' THEN 'disabled' WHEN 'R' THEN 'replica' ELSE 'always' END)
	FROM pg_trigger tg JOIN rel t ON t.oid = tg.tgrelid LEFT JOIN pg_constraint con ON con.oid = tg.tgconstraint
	WHERE tg.tgisinternal AND tg.tgenabled <> 'O'`

// An index of a constraint is part of the constraint's line, unless it has other properties.
var indexPart = `
	SELECT t.relnamespace, 60, 'pg_class'::regclass, i.indexrelid, 0, format('index %I.%I', s.name, x.relname),
		concat_ws('; ',
			CASE WHEN con.oid IS NULL THEN pg_get_indexdef(i.indexrelid)
				WHEN x.reloptions IS NOT NULL THEN format('ALTER INDEX %I.%I SET (%s)', s.name, x.relname, array_to_string(x.reloptions, ', ')) END,
			targets.statements,
			CASE WHEN i.indisclustered THEN format('ALTER TABLE %s CLUSTER ON %I', t.name, x.relname) END,
			CASE WHEN i.indisvalid AND i.indisready AND i.indislive THEN NULL WHEN x.relkind = 'I' THEN format('/* of partitions: not all have index %s */', ` + comment("quote_ident(x.relname)") + `)
				ELSE format('/* index %I.%I is invalid */', s.name, x.relname) END)
	FROM pg_index i
	JOIN rel t ON t.oid = i.indrelid
	JOIN shard s ON s.oid = t.relnamespace
	JOIN pg_class x ON x.oid = i.indexrelid
	LEFT JOIN pg_constraint con ON con.conindid = i.indexrelid AND con.contype IN ('p', 'u', 'x')
	LEFT JOIN (
		SELECT a.attrelid, string_agg(format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s', x.name, a.attnum, a.attstattarget), '; ' ORDER BY a.attnum)
		FROM pg_attribute a JOIN rel x ON x.oid = a.attrelid WHERE x.relkind IN ('i', 'I') AND a.attstattarget >= 0 GROUP BY a.attrelid
	) targets (oid, statements) ON targets.oid = i.indexrelid
	WHERE con.oid IS NULL OR targets.oid IS NOT NULL OR x.reloptions IS NOT NULL OR i.indisclustered OR NOT (i.indisvalid AND i.indisready AND i.indislive)`

// The index of a partitioned table is made without those of its partitions, which are attached to it.
const attachIndexPart = `
	SELECT x.relnamespace, 61, 'pg_class'::regclass, x.oid, -5, 'attached index ' || x.name, format('ALTER INDEX %s ATTACH PARTITION %s', i.inhparent::regclass, x.name)
	FROM rel x JOIN pg_inherits i ON i.inhrelid = x.oid
	WHERE x.relkind IN ('i', 'I')`

const statisticsPart = `
	SELECT st.stxnamespace, 62, 'pg_statistic_ext'::regclass, st.oid, 0, format('statistics %I.%I', s.name, st.stxname),
		concat(pg_get_statisticsobjdef(st.oid), CASE WHEN st.stxstattarget >= 0 THEN format('; ALTER STATISTICS %I.%I SET STATISTICS %s', s.name, st.stxname, st.stxstattarget) END)
	FROM pg_statistic_ext st JOIN shard s ON s.oid = st.stxnamespace`

// A trigger of a partitioned table makes those of its partitions, which are switched off by themselves.
const triggerPart = `
	SELECT t.relnamespace, 80, 'pg_trigger'::regclass, tg.oid, 0, format('trigger %s.%I', t.name, tg.tgname),
		concat_ws('; ', CASE tg.tgparentid WHEN 0 THEN pg_get_triggerdef(tg.oid) END, CASE WHEN tg.tgenabled <> 'O' THEN
			format('ALTER TABLE ONLY %s %s TRIGGER %I', t.name, CASE tg.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, tg.tgname) END)
	FROM pg_trigger tg JOIN rel t ON t.oid = tg.tgrelid
	WHERE NOT tg.tgisinternal AND (tg.tgparentid = 0 OR tg.tgenabled <> 'O') AND tg.tgfoid <> coalesce(to_regprocedure('kiloshard.refuse_arriving()')::oid, 0)` // those of a move are its own

const rulePart = `
	SELECT t.relnamespace, 70, 'pg_rewrite'::regclass, r.oid, 0, format('rule %s.%I', t.name, r.rulename),
		concat(rtrim(pg_get_ruledef(r.oid), ';'), CASE WHEN r.ev_enabled <> 'O' THEN format('; ALTER TABLE %s %s RULE %I', t.name,
			CASE r.ev_enabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, r.rulename) END)
	FROM pg_rewrite r JOIN rel t ON t.oid = r.ev_class
	WHERE r.rulename <> '_RETURN' AND r.oid = ANY ($5::oid[]) AND $6::oid = 'pg_rewrite'::regclass`

const policyPart = `
	SELECT t.relnamespace, 75, 'pg_policy'::regclass, p.oid, 0, format('policy %s.%I', t.name, p.polname),
		concat(format('CREATE POLICY %I ON %s AS %s FOR %s TO %s', p.polname, t.name, CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
			CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
			(SELECT string_agg(CASE role WHEN 0 THEN 'public' ELSE role::regrole::text END, ', ' ORDER BY role::regrole::text) FROM unnest(p.polroles) role)),
			' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
	FROM pg_policy p JOIN rel t ON t.oid = p.polrelid
	WHERE p.oid = ANY ($5::oid[]) AND $6::oid = 'pg_policy'::regclass`
