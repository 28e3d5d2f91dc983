package texts

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// summaryLimit is the largest number of words in a summary.
const summaryLimit = 8

// summarize returns the commands and tables in SQL, in order, such as "SELECT photos likes". It leaves out strings and
// numbers, so it contains no values.
func summarize(sql string) string {
	var found []string
	var opening, before string // the first word of the statement, and the word before this one
	for token := range sqltext.Tokens(sql) {
		if len(found) == summaryLimit {
			break
		}
		w := wordOf(token)
		switch {
		case w == "":
			continue
		case w == ";":
			opening, before = "", ""
			continue
		case opening == "":
			opening = w
			if w != "with" {
				found = append(found, strings.ToUpper(w))
			}
		case before == opening && (opening == "create" || opening == "alter" || opening == "drop"):
			found = append(found, strings.ToUpper(w)) // TABLE, INDEX, SCHEMA
		case manipulates(w, before):
			found = append(found, strings.ToUpper(w))
		case namesTable(before) && !structure[w] && !slices.Contains(found, w):
			found = append(found, w)
		}
		before = w
	}
	return strings.Join(found, " ")
}

// SummaryOf returns the summary of a batch: "BATCH", followed by the summary of its statements if they all have the same.
func (c *Cache) SummaryOf(batch *pgx.Batch) string {
	common := ""
	for i, query := range batch.QueuedQueries {
		summary := c.Of(query.SQL).Summary
		if i > 0 && summary != common {
			return "BATCH"
		}
		common = summary
	}
	return strings.TrimSpace("BATCH " + common)
}

// manipulates reports whether a word starts a part of a statement that reads or changes rows.
func manipulates(w, before string) bool {
	switch w {
	case "select", "insert", "delete", "merge":
		return before != "for"
	case "update":
		return before != "for" && before != "do" && before != "key" && before != "on"
	}
	return false
}

// namesTable reports whether the name of a table follows a word.
func namesTable(w string) bool {
	switch w {
	case "from", "join", "into", "update", "only", "lateral", "copy", "truncate":
		return true
	}
	return false
}

// structure are words that may appear in the place of a table name but are not tables.
var structure = map[string]bool{
	"as": true, "by": true, "distinct": true, "group": true, "limit": true, "on": true, "only": true, "order": true,
	"returning": true, "select": true, "set": true, "values": true, "where": true,
}
