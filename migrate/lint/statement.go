package lint

// statement applies the rules that look at a whole statement, and notes what it creates.
func (l *linter) statement(n node) {
	switch {
	case n.CreateTable != nil:
		l.create(*n.CreateTable.Relation, n.CreateTable.IfNotExists)
	case n.CreateSequence != nil:
		l.create(n.CreateSequence.Sequence, n.CreateSequence.IfNotExists)
	case n.CreateTableAs != nil:
		l.create(n.CreateTableAs.Into.Relation, n.CreateTableAs.IfNotExists)
	case n.Select != nil && n.Select.Into != nil:
		l.create(n.Select.Into.Relation, false)
	case n.CreateIndex != nil:
		l.createIndex(n.CreateIndex)
	case n.Reindex != nil:
		l.reindex(n.Reindex)
	case n.Drop != nil:
		l.drop(n.Drop)
	case n.Rename != nil:
		l.rename(n.Rename)
	case n.AlterSchema != nil:
		if r := n.AlterSchema.Relation; r != nil && !l.isNew(*r) {
			l.warn(setSchemaRule, r.Location)
		}
	case n.AlterTable != nil:
		l.alterTable(n.AlterTable)
	case n.MoveAll != nil:
		l.warn(setTablespaceRule, 0)
	case n.CreateTrigger != nil:
		if r := n.CreateTrigger.Relation; !l.isNew(*r) {
			l.warn(createTriggerRule, r.Location)
		}
	case n.Refresh != nil:
		if r := n.Refresh.Relation; !n.Refresh.Concurrent && !l.isNew(r) {
			l.warn(refreshRule, r.Location)
		}
	case n.Truncate != nil:
		l.each(n.Truncate.Relations, func(r rangeVar) {
			l.warn(truncateRule, r.Location)
			if n.Truncate.Restart {
				l.warn(sequenceBackRule, r.Location, "TRUNCATE … RESTART IDENTITY")
			}
		})
	case n.AlterSequence != nil:
		l.alterSequence(n.AlterSequence)
	case n.Lock != nil:
		l.lockTable(n.Lock)
	default:
		l.maintenance(n)
	}
}

// alterSequence warns of options that give a sequence new storage, which a rollback undoes.
func (l *linter) alterSequence(s *alterSeq) {
	if l.isNew(s.Sequence) {
		return
	}
	for _, n := range s.Options {
		if n.DefElem != nil && n.DefElem.Name != "owned_by" {
			l.warn(sequenceBackRule, 0, "ALTER SEQUENCE")
			return
		}
	}
}

// each calls fn for relations that the text has not created.
func (l *linter) each(relations []node, fn func(r rangeVar)) {
	for _, n := range relations {
		if n.RangeVar != nil && !l.isNew(*n.RangeVar) {
			fn(*n.RangeVar)
		}
	}
}

func (l *linter) createIndex(s *createIndex) {
	if s.Concurrent {
		l.outside("CREATE INDEX CONCURRENTLY")
		return
	}
	if !l.isNew(s.Relation) {
		l.warn(createIndexRule, 0)
		return
	}
	if s.Name != "" { // an index is in the schema of its table
		l.create(rangeVar{Schema: s.Relation.Schema, Name: s.Name}, s.IfNotExists)
	}
}

func (l *linter) reindex(s *reindex) {
	concurrently := option(s.Params, "concurrently")
	whole := s.Relation == nil // a schema, or the database
	if concurrently || whole {
		l.outside("REINDEX CONCURRENTLY and of more than one table")
	}
	if !concurrently && (whole || !l.isNew(*s.Relation)) {
		l.warn(reindexRule, 0)
	}
}

func (l *linter) drop(s *drop) {
	if s.Concurrent {
		l.outside("DROP INDEX CONCURRENTLY")
		return
	}
	r, ok := map[string]rule{
		"OBJECT_INDEX": dropIndexRule, "OBJECT_TABLE": dropTableRule,
		"OBJECT_VIEW": dropTableRule, "OBJECT_MATVIEW": dropTableRule,
	}[s.Type]
	if !ok {
		return
	}
	for _, o := range s.Objects {
		if o.List == nil {
			continue
		}
		if !l.isNew(dotted(names(o.List.Items))) {
			l.warn(r, 0)
			return
		}
	}
}

// dotted makes a relation of the parts of its name.
func dotted(parts []string) rangeVar {
	switch len(parts) {
	case 0:
		return rangeVar{}
	case 1:
		return rangeVar{Name: parts[0]}
	}
	return rangeVar{Schema: parts[len(parts)-2], Name: parts[len(parts)-1]}
}

func (l *linter) rename(s *rename) {
	if s.Relation == nil {
		return // a type, a function and so on
	}
	isNew := l.isNew(*s.Relation)
	switch s.Type {
	case "OBJECT_TABLE", "OBJECT_VIEW", "OBJECT_MATVIEW", "OBJECT_FOREIGN_TABLE":
		if !isNew {
			l.warn(renameTableRule, s.Relation.Location)
		} else {
			l.create(rangeVar{Schema: s.Relation.Schema, Name: s.NewName}, !l.known.made[l.key(s.Relation.Schema, s.Relation.Name)])
		}
	case "OBJECT_COLUMN", "OBJECT_ATTRIBUTE":
		if !isNew {
			l.warn(renameColumnRule, s.Relation.Location)
		}
	}
}

func (l *linter) lockTable(s *lock) {
	modes := []string{5: "SHARE", 6: "SHARE ROW EXCLUSIVE", 7: "EXCLUSIVE", 8: "ACCESS EXCLUSIVE"}
	if s.Mode < 5 || s.Mode >= len(modes) {
		return // weaker ones block neither reads nor writes
	}
	blocks := "writes"
	if s.Mode == 8 {
		blocks = "reads and writes"
	}
	l.each(s.Relations, func(r rangeVar) { l.warn(lockTableRule, r.Location, modes[s.Mode], blocks) })
}

// maintenance applies the rules for VACUUM, CLUSTER and other maintenance commands.
func (l *linter) maintenance(n node) {
	switch {
	case n.Vacuum != nil && n.Vacuum.IsVacuum:
		l.outside("VACUUM")
		if option(n.Vacuum.Options, "full") {
			l.warn(vacuumFullRule, 0)
		}
	case n.Cluster != nil:
		if n.Cluster.Relation == nil {
			l.outside("CLUSTER of all tables")
		}
		if n.Cluster.Relation == nil || !l.isNew(*n.Cluster.Relation) {
			l.warn(clusterRule, 0)
		}
	case n.CreateDatabase != nil:
		l.outside("CREATE DATABASE")
	case n.DropDatabase != nil:
		l.outside("DROP DATABASE")
	case n.CreateTablespace != nil:
		l.outside("CREATE TABLESPACE")
	case n.DropTablespace != nil:
		l.outside("DROP TABLESPACE")
	case n.AlterSystem != nil:
		l.outside("ALTER SYSTEM")
	}
}

// outside warns of a statement that cannot run inside a transaction, if the text runs in one.
func (l *linter) outside(what string) {
	if l.transaction {
		l.warn(needsNoTransaction, 0, what)
	}
}
