package tables

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Name is the name of a table and that of its schema, as the catalog has them.
type Name struct{ Schema, Table string }

// SQL returns the name for a statement, in quotes.
func (n Name) SQL() string { return pgx.Identifier{n.Schema, n.Table}.Sanitize() }

// String returns the name for people and files, in quotes where SQL would fold it: public.users, "Old"."Users".
func (n Name) String() string { return Join(n.Schema, n.Table) }

// Compare orders names by schema, then by table.
func (n Name) Compare(other Name) int {
	return slices.Compare([]string{n.Schema, n.Table}, []string{other.Schema, other.Table})
}

// MarshalText writes the name as String does.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (n *Name) UnmarshalText(text []byte) error {
	name, err := ParseName(string(text))
	if err == nil {
		*n = name
	}
	return err
}

var plain = regexp.MustCompile(`^[a-z_][a-z0-9_$]*$`)

// Join returns a dotted name, each part in quotes where SQL would fold it.
func Join(parts ...string) string {
	written := make([]string, len(parts))
	for i, part := range parts {
		if written[i] = part; !plain.MatchString(part) {
			written[i] = pgx.Identifier{part}.Sanitize()
		}
	}
	return strings.Join(written, ".")
}

// quoted returns the name of a column for a statement.
func quoted(column string) string { return pgx.Identifier{column}.Sanitize() }

// ParseName reads a table's name with its schema, as [Name.String] writes it.
func ParseName(text string) (Name, error) {
	parts, err := Split(text)
	if err != nil {
		return Name{}, err
	}
	if len(parts) != 2 {
		return Name{}, fmt.Errorf("%s: expected a table with its schema, such as public.users", text)
	}
	return Name{parts[0], parts[1]}, nil
}

// Split returns the parts of a dotted name. As in SQL, a part without quotes is folded to lower case, and two quotes within a
// quoted part are one.
func Split(text string) ([]string, error) {
	var parts []string
	for rest := text; ; {
		var part string
		if quotedPart, ok := strings.CutPrefix(rest, `"`); ok {
			end := 0
			for {
				i := strings.IndexByte(quotedPart[end:], '"')
				if i < 0 {
					return nil, fmt.Errorf("%s: a quote is not closed", text)
				}
				if end += i; !strings.HasPrefix(quotedPart[end:], `""`) {
					break
				}
				end += 2
			}
			part, rest = strings.ReplaceAll(quotedPart[:end], `""`, `"`), quotedPart[end+1:]
		} else {
			end := strings.IndexAny(rest, `."`)
			if end < 0 {
				end = len(rest)
			}
			part, rest = strings.ToLower(rest[:end]), rest[end:]
		}
		if part == "" || strings.ContainsRune(part, 0) {
			return nil, fmt.Errorf("%s: a part of the name is empty", text)
		}
		parts = append(parts, part)
		switch {
		case rest == "":
			return parts, nil
		case rest[0] != '.':
			return nil, fmt.Errorf("%s: expected names with dots between them", text)
		}
		rest = rest[1:]
	}
}
