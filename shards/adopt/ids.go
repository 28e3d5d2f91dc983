package adopt

import (
	"fmt"

	"github.com/kiloshard/kiloshard/shards/tables"
)

// IDs is where the IDs of rows come from that are inserted by way of a shard.
type IDs string

// The sources of IDs.
const (
	NextID   IDs = "next_id"  // the shard's next_id(): the ID says which shard has the row
	Sequence IDs = "sequence" // the sequence of the old table
)

const expectedIDs = "next_id or sequence"

func readIDs(text string, _ bool) (IDs, error) {
	if i := IDs(text); i == NextID || i == Sequence {
		return i, nil
	}
	return "", fmt.Errorf("%q; expected %s", text, expectedIDs)
}

// idColumn returns the primary key of a table if it is one column that draws from a sequence, and why next_id() cannot be its default, or
// nothing. It is nil for other tables.
func (p *Plan) idColumn(name tables.Name) (column *tables.Column, not string) {
	table := p.catalog.Table(name)
	key := table.PrimaryKey()
	if len(key) != 1 {
		return nil, ""
	}
	if column = table.Column(key[0]); column.Sequence == "" {
		return nil, ""
	}
	route, ok := p.graph.Route(name)
	switch {
	case column.Type != "bigint":
		return column, "of type " + column.Type
	case column.Always:
		return column, "generated always as identity"
	case ok && len(route.Links) == 0 && route.Column == column.Name:
		return column, "the key, which decides the shard"
	}
	return column, ""
}

// setIDs sets what a sharded table has of IDs.
func (p *Plan) setIDs(t *TablePlan) {
	t.Copy = t.decided != nil && t.decided.Copy
	column, not := p.idColumn(t.Table)
	if column == nil {
		return
	}
	t.ID, t.IDs = column.Name, NextID
	if not != "" {
		t.IDs = Sequence
	}
	if t.decided != nil && t.decided.IDs != "" {
		t.IDs = t.decided.IDs
	}
}

// checkIDs returns an error for IDs that the table cannot have.
func (p *Plan) checkIDs(file *File, at string, d Decision) error {
	column, not := p.idColumn(d.Table)
	switch {
	case d.IDs == "":
		return nil
	case column == nil:
		return file.wrong(at+".ids", string(d.IDs)+" of a table whose primary key draws from no sequence", "no ids")
	case d.IDs == NextID && not != "":
		return file.wrong(at+".ids", fmt.Sprintf("next_id for %s, %s", column.Name, not), "sequence")
	}
	return nil
}
