package lint

import "encoding/json"

// The types in this file are the parts of Postgres's parse tree that the rules use, with the names of the parser's JSON and
// of src/include/nodes/parsenodes.h. The JSON omits default values.

// node is a node of any kind; one of its fields is set, or none for a kind that no rule looks at.
type node struct {
	AlterTable       *alterTable   `json:"AlterTableStmt"`
	AlterTableCmd    *alterCmd     `json:"AlterTableCmd"`
	AlterSchema      *alterSchema  `json:"AlterObjectSchemaStmt"`
	AlterSequence    *alterSeq     `json:"AlterSeqStmt"`
	AlterSystem      *struct{}     `json:"AlterSystemStmt"`
	Cluster          *onRelation   `json:"ClusterStmt"`
	ColumnDef        *columnDef    `json:"ColumnDef"`
	Constraint       *constraint   `json:"Constraint"`
	CreateDatabase   *struct{}     `json:"CreatedbStmt"`
	CreateIndex      *createIndex  `json:"IndexStmt"`
	CreateSequence   *alterSeq     `json:"CreateSeqStmt"`
	CreateTable      *createTable  `json:"CreateStmt"`
	CreateTableAs    *createAs     `json:"CreateTableAsStmt"`
	CreateTablespace *struct{}     `json:"CreateTableSpaceStmt"`
	CreateTrigger    *onRelation   `json:"CreateTrigStmt"`
	DefElem          *defElem      `json:"DefElem"`
	Drop             *drop         `json:"DropStmt"`
	DropDatabase     *struct{}     `json:"DropdbStmt"`
	DropTablespace   *struct{}     `json:"DropTableSpaceStmt"`
	FuncCall         *funcCall     `json:"FuncCall"`
	Integer          *integer      `json:"Integer"`
	List             *list         `json:"List"`
	Lock             *lock         `json:"LockStmt"`
	MoveAll          *struct{}     `json:"AlterTableMoveAllStmt"`
	PartitionCmd     *partitionCmd `json:"PartitionCmd"`
	RangeVar         *rangeVar     `json:"RangeVar"`
	Refresh          *refresh      `json:"RefreshMatViewStmt"`
	Reindex          *reindex      `json:"ReindexStmt"`
	Rename           *rename       `json:"RenameStmt"`
	Select           *selectStmt   `json:"SelectStmt"`
	String           *str          `json:"String"`
	Truncate         *truncate     `json:"TruncateStmt"`
	TypeCast         *typeCast     `json:"TypeCast"`
	Vacuum           *vacuum       `json:"VacuumStmt"`
	VacuumRelation   *onRelation   `json:"VacuumRelation"`
}

// rangeVar is a table, an index, or another relation, by its name.
type rangeVar struct {
	Schema   string `json:"schemaname"`
	Name     string `json:"relname"`
	Location int    `json:"location"`
}

type str struct {
	Text string `json:"sval"`
}

type integer struct {
	Value int `json:"ival"`
}

type list struct {
	Items []node `json:"items"`
}

type onRelation struct {
	Relation *rangeVar `json:"relation"`
}

type createTable struct {
	Relation    *rangeVar `json:"relation"`
	Elements    []node    `json:"tableElts"`
	IfNotExists bool      `json:"if_not_exists"`
}

type funcCall struct {
	Name []node `json:"funcname"`
}

type typeCast struct {
	Arg node `json:"arg"`
}

type relations struct {
	Relations []node `json:"relations"`
}

type truncate struct {
	relations
	Restart bool `json:"restart_seqs"`
}

type alterSeq struct {
	Sequence    rangeVar `json:"sequence"`
	Options     []node   `json:"options"`
	IfNotExists bool     `json:"if_not_exists"`
}

type alterTable struct {
	Relation rangeVar `json:"relation"`
	Commands []node   `json:"cmds"`
	Type     string   `json:"objtype"`
}

type alterCmd struct {
	Subtype string `json:"subtype"`
	Name    string `json:"name"`
	Def     node   `json:"def"`
}

type columnDef struct {
	Name        string   `json:"colname"`
	Type        typeName `json:"typeName"`
	Constraints []node   `json:"constraints"`
	Location    int      `json:"location"`
}

type typeName struct {
	Names  []node `json:"names"`
	Bounds []node `json:"arrayBounds"`
}

type constraint struct {
	Type           string          `json:"contype"`
	Name           string          `json:"conname"`
	SkipValidation bool            `json:"skip_validation"`
	Expr           json.RawMessage `json:"raw_expr"`
	Index          string          `json:"indexname"` // of USING INDEX
	Keys           []node          `json:"keys"`
	Own            []node          `json:"fk_attrs"`
	Other          *rangeVar       `json:"pktable"`
	OtherColumns   []node          `json:"pk_attrs"`
	Location       int             `json:"location"`
}

type partitionCmd struct {
	Concurrent bool `json:"concurrent"`
}

type alterSchema struct {
	Type     string    `json:"objectType"`
	Relation *rangeVar `json:"relation"`
}

type createIndex struct {
	Name        string   `json:"idxname"`
	Relation    rangeVar `json:"relation"`
	Concurrent  bool     `json:"concurrent"`
	IfNotExists bool     `json:"if_not_exists"`
}

type createAs struct {
	Into        into `json:"into"`
	IfNotExists bool `json:"if_not_exists"`
}

type into struct {
	Relation rangeVar `json:"rel"`
}

type selectStmt struct {
	Into *into `json:"intoClause"`
}

type drop struct {
	Objects    []node `json:"objects"`
	Type       string `json:"removeType"`
	Concurrent bool   `json:"concurrent"`
}

type defElem struct {
	Name string `json:"defname"`
	Arg  node   `json:"arg"`
}

type lock struct {
	Relations []node `json:"relations"`
	Mode      int    `json:"mode"` // from 1, ACCESS SHARE, to 8, ACCESS EXCLUSIVE
}

type refresh struct {
	Relation   rangeVar `json:"relation"`
	Concurrent bool     `json:"concurrent"`
}

type reindex struct {
	Kind     string    `json:"kind"`
	Relation *rangeVar `json:"relation"`
	Params   []node    `json:"params"`
}

type rename struct {
	Type         string    `json:"renameType"`
	RelationType string    `json:"relationType"`
	Relation     *rangeVar `json:"relation"`
	NewName      string    `json:"newname"`
}

type vacuum struct {
	IsVacuum  bool   `json:"is_vacuumcmd"` // else it is ANALYZE
	Options   []node `json:"options"`
	Relations []node `json:"rels"`
}

// names returns the parts of a dotted name.
func names(nodes []node) []string {
	var parts []string
	for _, n := range nodes {
		if n.String != nil {
			parts = append(parts, n.String.Text)
		}
	}
	return parts
}

// option reports whether a statement has an option such as CONCURRENTLY that is not switched off.
func option(options []node, name string) bool {
	for _, o := range options {
		if o.DefElem != nil && o.DefElem.Name == name {
			return o.DefElem.isOn()
		}
	}
	return false
}

// isOn reports whether an option has no argument, or one that Postgres reads as true.
func (d *defElem) isOn() bool {
	switch {
	case d.Arg.Integer != nil:
		return d.Arg.Integer.Value != 0
	case d.Arg.String != nil:
		return d.Arg.String.Text != "false" && d.Arg.String.Text != "off"
	}
	return true
}
