package lint

// alterTable applies the rules for the commands of an ALTER TABLE.
func (l *linter) alterTable(s *alterTable) {
	if l.isNew(s.Relation) {
		return
	}
	switch s.Type {
	case "OBJECT_TABLE", "OBJECT_MATVIEW", "OBJECT_INDEX":
	case "OBJECT_SEQUENCE":
		l.alterStorage(s)
		return
	default:
		return // views, types: they have no rows to scan
	}
	for _, n := range s.Commands {
		if n.AlterTableCmd != nil {
			l.alter(s.Relation, n.AlterTableCmd)
		}
	}
}

// alterStorage warns of a sequence that is made logged or unlogged.
func (l *linter) alterStorage(s *alterTable) {
	for _, n := range s.Commands {
		if n.AlterTableCmd == nil {
			continue
		}
		switch n.AlterTableCmd.Subtype {
		case "AT_SetUnLogged":
			l.warn(sequenceBackRule, 0, "SET UNLOGGED, whose values come again after a crash, too,")
		case "AT_SetLogged":
			l.warn(sequenceBackRule, 0, "SET LOGGED")
		}
	}
}

func (l *linter) alter(table rangeVar, cmd *alterCmd) {
	switch cmd.Subtype {
	case "AT_AddColumn":
		if cmd.Def.ColumnDef != nil {
			l.addColumn(cmd.Def.ColumnDef)
		}
	case "AT_AlterColumnType":
		location := 0
		if cmd.Def.ColumnDef != nil {
			location = cmd.Def.ColumnDef.Location
		}
		l.warn(columnTypeRule, location)
	case "AT_AddConstraint":
		if cmd.Def.Constraint != nil {
			l.addConstraint(table, cmd.Def.Constraint)
		}
	case "AT_ValidateConstraint":
		if l.transaction && l.notValid[l.key(table.Schema, table.Name)+" "+cmd.Name] {
			l.warn(validateRule, 0)
		}
	case "AT_SetExpression":
		l.warn(setExpressionRule, 0)
	case "AT_SetNotNull":
		l.warn(setNotNullRule, 0)
	case "AT_DropColumn":
		l.warn(dropColumnRule, 0)
	case "AT_SetTableSpace":
		l.warn(setTablespaceRule, 0)
	case "AT_SetLogged", "AT_SetUnLogged":
		l.warn(setLoggedRule, 0)
	case "AT_SetAccessMethod":
		l.warn(setAccessMethodRule, 0)
	case "AT_DetachPartition":
		if cmd.Def.PartitionCmd != nil && cmd.Def.PartitionCmd.Concurrent {
			l.outside("DETACH PARTITION CONCURRENTLY")
		}
	}
}

func (l *linter) addConstraint(table rangeVar, c *constraint) {
	if c.SkipValidation {
		l.notValid[l.key(table.Schema, table.Name)+" "+c.Name] = true
		return
	}
	if c.Index != "" {
		return
	}
	if r, ok := constraintRules[c.Type]; ok {
		l.warn(r, c.Location)
	}
}

// constraintRules are for constraints that scan all rows.
var constraintRules = map[string]rule{
	"CONSTR_CHECK":     addCheckRule,
	"CONSTR_FOREIGN":   addForeignKeyRule,
	"CONSTR_PRIMARY":   addPrimaryKeyRule,
	"CONSTR_UNIQUE":    addUniqueRule,
	"CONSTR_EXCLUSION": addExcludeRule,
}

// addColumn applies the rules for ADD COLUMN, which touches no row, even with a default that is the same for all rows.
func (l *linter) addColumn(c *columnDef) {
	var hasValue, notNull bool // in existing rows
	for _, n := range c.Constraints {
		if n.Constraint == nil {
			continue
		}
		switch n.Constraint.Type {
		case "CONSTR_DEFAULT":
			hasValue = true
			if call := volatileCall(n.Constraint.Expr); call != "" {
				l.warn(volatileDefaultRule, n.Constraint.Location, call)
			}
		case "CONSTR_IDENTITY":
			hasValue = true
			l.warn(identityColumnRule, n.Constraint.Location)
		case "CONSTR_GENERATED":
			hasValue = true
			l.warn(storedColumnRule, n.Constraint.Location)
		case "CONSTR_NOTNULL":
			notNull = true
		}
	}
	if isSerial(c.Type) {
		hasValue = true
		l.warn(serialColumnRule, c.Location)
	}
	if notNull && !hasValue {
		l.warn(notNullColumnRule, c.Location)
	}
	for _, n := range c.Constraints {
		if n.Constraint == nil || n.Constraint.Type == "CONSTR_FOREIGN" && !hasValue {
			continue // Postgres does not check a foreign key that is null in all rows
		}
		if r, ok := constraintRules[n.Constraint.Type]; ok {
			l.warn(r, n.Constraint.Location)
		}
	}
}

func isSerial(t typeName) bool {
	if len(t.Names) != 1 || t.Names[0].String == nil {
		return false
	}
	switch t.Names[0].String.Text {
	case "smallserial", "serial2", "serial", "serial4", "bigserial", "serial8":
		return true
	}
	return false
}
