package adopt

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/internal/configfile"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// File is adopt.yaml: what people have decided.
type File struct {
	Key      tables.ColumnName `yaml:"key"`
	Strategy Strategy          `yaml:"strategy"`
	Links    []Link            `yaml:"links,omitempty"` // foreign keys that the database does not have
	Tables   []Decision        `yaml:"tables"`

	name  string
	lines configfile.Lines
}

// Link is a foreign key that the database does not have.
type Link struct {
	From       tables.Name `yaml:"from,required"`
	Columns    []string    `yaml:"columns,required"`
	To         tables.Name `yaml:"to,required"`
	References []string    `yaml:"references,required"` // unique together
}

// Name returns the name that the link has where a foreign key is named: columns->table.
func (l Link) Name() string { return strings.Join(l.Columns, ",") + "->" + l.To.String() }

// Decision is what was decided about one table.
type Decision struct {
	Table   tables.Name `yaml:"table,required"`
	Is      Class       `yaml:"is,required"`
	By      string      `yaml:"by,omitempty"`      // the column with the key; of a keyed table
	Through string      `yaml:"through,omitempty"` // the foreign key that leads to the key; of a chained table
	Crosses []string    `yaml:"crosses,omitempty"` // foreign keys that may lead to another shard: shards will not have them
	Keyless Class       `yaml:"keyless,omitempty"` // left: rows without a key stay in the old table
	IDs     IDs         `yaml:"ids,omitempty"`     // where the IDs of new rows come from; of a table with an ID
	Copy    bool        `yaml:"copy,omitempty"`    // COPY into a shard's view works, and ON CONFLICT there does not
}

var format = configfile.Format{
	Scalars: []configfile.Scalar{
		configfile.ScalarOf("a table with its schema, such as public.users", func(text string, _ bool) (tables.Name, error) { return tables.ParseName(text) },
			func(n tables.Name) string { return configfile.Plain(n.String()) }),
		configfile.ScalarOf("a column with its table and schema, such as public.users.id", func(text string, _ bool) (tables.ColumnName, error) { return parseKey(text) },
			func(c tables.ColumnName) string { return configfile.Plain(c.String()) }),
		configfile.ScalarOf(expectedIDs, readIDs, func(i IDs) string { return string(i) }),
		configfile.ScalarOf(expectedClass, readClass, func(c Class) string { return string(c) }),
	},
	Expected: func(field string) string {
		switch {
		case strings.HasPrefix(field, "strategy"):
			return expectedStrategy
		case strings.HasSuffix(field, ".by"):
			return "the column that has the key"
		case strings.HasSuffix(field, ".through"):
			return "the name of the foreign key that leads to the key"
		case strings.Contains(field, ".crosses"):
			return "a list of names of foreign keys"
		case strings.HasPrefix(field, "links"):
			return "links such as {from: public.events, columns: [photo_id], to: public.photos, references: [id]}"
		}
		return "tables such as {table: public.albums, is: keyed, by: user_id}"
	},
	Advise: func(string, []string) string { return "" },
}

func parseKey(text string) (tables.ColumnName, error) {
	parts, err := tables.Split(text)
	if err == nil && len(parts) != 3 {
		err = fmt.Errorf("%s: expected a column with its table and schema, such as public.users.id", text)
	}
	if err != nil {
		return tables.ColumnName{}, err
	}
	return tables.ColumnName{Table: tables.Name{Schema: parts[0], Table: parts[1]}, Column: parts[2]}, nil
}

// ParseFile reads adopt.yaml. name is for errors, which are a [shards.FieldError].
func ParseFile(name string, text []byte) (*File, error) {
	f := &File{name: name}
	lines, err := format.Decode(text, f)
	f.lines = lines
	if broken := (*configfile.Error)(nil); errors.As(err, &broken) {
		e := &shards.FieldError{File: name, Line: broken.Line, Field: broken.Field, Found: broken.Found, Expected: broken.Expected}
		if broken.Err != nil {
			e.Found = broken.Err.Error()
		}
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	seen := map[tables.Name]bool{}
	switch {
	case f.Key == tables.ColumnName{}:
		return nil, f.wrong("key", "missing", "the column with the key, such as public.users.id")
	case f.Strategy != Strategy{By: "modulo"} && f.Strategy != Strategy{By: "hash", Hash: "hex"}:
		return nil, f.wrong("strategy", fmt.Sprintf("by %q, hash %q", f.Strategy.By, f.Strategy.Hash), expectedStrategy)
	}
	for i, d := range f.Tables {
		at := fmt.Sprintf("tables[%d]", i)
		switch {
		case seen[d.Table]:
			return nil, f.wrong(at+".table", d.Table.String()+" a second time", "each table once")
		case d.By != "" && d.Is != Keyed:
			return nil, f.wrong(at+".by", "a column of a table that is "+string(d.Is), "it of tables that are keyed")
		case d.Through != "" && d.Is != Chained:
			return nil, f.wrong(at+".through", "a foreign key of a table that is "+string(d.Is), "it of tables that are chained")
		case d.Keyless != "" && (d.Keyless != Left || !d.Is.Sharded()):
			return nil, f.wrong(at+".keyless", string(d.Keyless), "left, of tables that are keyed or chained")
		case (d.IDs != "" || d.Copy) && !d.Is.Sharded():
			return nil, f.wrong(at, "ids or copy of a table that is "+string(d.Is), "them of tables that are keyed or chained")
		case len(d.Crosses) > 0 && !d.Is.Sharded():
			return nil, f.wrong(at+".crosses", "foreign keys of a table that is "+string(d.Is), "them of tables that are keyed or chained")
		}
		seen[d.Table] = true
	}
	return f, nil
}

// wrong returns the error of a field that has a line in the file.
func (f *File) wrong(field, found, expected string) error {
	return &shards.FieldError{File: f.name, Line: f.lines.Of(field), Field: field, Found: found, Expected: expected}
}

const fileHead = `What each table of the database becomes: keyed, chained, reference, left, undecided.
kiloshard help adopt explains the words. Edit this file, then run kiloshard adopt plan again: it keeps what is here.`

// Write returns the file with a comment for each field, and for each table the decision that is missing, or the reason for the one that stands.
func (p *Plan) Write() []byte {
	var b bytes.Buffer
	section := func(comment, field string) {
		b.WriteString("\n" + note("", comment) + field + "\n")
	}
	b.WriteString(note("", fileHead))
	section("The column whose value decides the shard of a row.", "key: "+format.Flow(p.Key))
	section("How the shard is computed, as in kiloshard.yaml: {by: modulo} for whole numbers, {by: hash, hash: hex} for texts and UUIDs.",
		"strategy: "+format.Flow(p.Strategy))
	links := "links: []"
	if len(p.links) > 0 {
		links = "links:"
		for _, link := range p.links {
			links += "\n  - " + format.Flow(link)
		}
	}
	section("Foreign keys that the database does not have, such as\n{from: public.events, columns: [photo_id], to: public.photos, references: [id]}", links)
	section("by is the column with the key of a keyed table, through the foreign key that leads a chained one to it. crosses names foreign\n"+
		"keys whose rows may be in another shard, which shards cannot have. keyless: left leaves rows without a key in the old table.\n"+
		"ids is where a row that is inserted by way of a shard gets its ID: next_id, the shard's own, by which ForID finds the shard, or the old\n"+
		"sequence. IDs of next_id are beyond 2^53, and do not fit into int4. copy: true lets COPY write to a shard's view; ON CONFLICT does not\n"+
		"work there then.", "tables:")
	for _, t := range p.Tables {
		if t.Is == Undecided {
			b.WriteString(note("  ", strings.Join(append([]string{t.Why}, t.Options...), "\n")))
		}
		b.WriteString("  - " + format.Flow(t.decision()) + "\n")
	}
	return b.Bytes()
}

// decision returns what the file has for a table. What is undecided keeps the accepted parts out, since they may be of another way.
func (t *TablePlan) decision() Decision {
	d := Decision{Table: t.Table, Is: t.Is}
	if t.decided != nil && t.decided.Is != Undecided {
		d = *t.decided
		d.IDs = t.IDs
		return d
	}
	d.IDs = t.IDs
	switch t.Is {
	case Keyed:
		d.By = t.By
	case Chained:
		d.Through = t.Through
	}
	return d
}

// note returns a text as a comment. Names of tables may have any character, and YAML knows more ends of lines than one.
func note(indent, text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(strings.TrimRight(indent+"# "+visible(line), " ") + "\n")
	}
	return b.String()
}

// visible writes characters that are not printed as escapes.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
