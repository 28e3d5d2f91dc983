package entities

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

const maxTexts = 2000 // bytes in a row: Postgres takes 2700 in an entry of an index

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// values returns the values of the index rows of an entity, and whether some rows are missing because their texts are too
// long. Writers, the cleaner and the filter of queries all use it.
func (i IndexDefinition) values(d properties) (all [][]any, tooLong bool) {
	for name, want := range i.Where {
		want, _ := scalar(want)
		if want == nil && len(d[name]) > 0 && string(d[name]) != "null" || want != nil && value(d[name], kindOf(want)) != want {
			return nil, false
		}
	}
	rest := make([]any, len(i.Properties))
	for k, p := range i.Properties[1:] {
		if rest[k+1] = value(d[p.Name], p.Type); rest[k+1] == nil {
			return nil, false
		}
	}
	lead := d[i.Properties[0].Name]
	leads := []json.RawMessage{lead}
	if i.Properties[0].Each {
		leads = nil // else Unmarshal would write the first element over its input
		if len(lead) == 0 || lead[0] != '[' || json.Unmarshal(lead, &leads) != nil {
			return nil, false
		}
	}
	for _, raw := range leads {
		row := slices.Clone(rest)
		if row[0] = value(raw, i.Properties[0].Type); row[0] == nil {
			continue
		}
		texts := 0
		for _, v := range row {
			if text, ok := v.(string); ok {
				texts += len(text)
			}
		}
		if texts > maxTexts {
			tooLong = true
		} else if !slices.ContainsFunc(all, func(o []any) bool { return o[0] == row[0] }) {
			all = append(all, row)
		}
	}
	return all, tooLong
}

// has reports whether an entity with these properties has an index row with these values.
func (i IndexDefinition) has(d properties, values []any) bool {
	all, _ := i.values(d)
	return slices.ContainsFunc(all, func(row []any) bool { return slices.Equal(row, values) })
}

// scanned converts the values that pgx returns to those of [value].
func scanned(values []any) []any {
	for k, v := range values {
		if at, ok := v.(time.Time); ok {
			values[k] = inMicroseconds(at)
		}
	}
	return values
}

// hash returns the shard of a value of the first property.
func (s *Store) hash(lead any) shards.Number {
	switch v := lead.(type) {
	case float64:
		lead = strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time:
		lead = v.UnixMicro()
	}
	return shards.MD5Shard(fmt.Append(nil, lead), s.d.Shards)
}

// row is an index row.
type row struct {
	index   int // in the definition
	values  []any
	id      ID
	version int64
}

// rowKey returns a key that identifies an index row: the position of the index, the values, and the entity.
func rowKey(index int, values []any, id ID) string {
	return fmt.Sprintf("%d %#v %x", index, values, id)
}

// rows are index rows by their keys.
type rows map[string]row

// compare orders rows of one index by their values.
func (r row) compare(other row) int {
	for k, v := range r.values {
		order := 0
		switch v := v.(type) {
		case string:
			order = cmp.Compare(v, other.values[k].(string))
		case int64:
			order = cmp.Compare(v, other.values[k].(int64))
		case float64:
			order = cmp.Compare(v, other.values[k].(float64))
		case time.Time:
			order = v.Compare(other.values[k].(time.Time))
		case bool:
			if other := other.values[k].(bool); v != other {
				order = 1
				if other {
					order = -1
				}
			}
		}
		if order != 0 {
			return order
		}
	}
	return bytes.Compare(r.id[:], other.id[:])
}

// rowsOf returns the index rows of an entity that has these properties and a version. The error says which index has too
// long texts; the other rows come with it.
func (s *Store) rowsOf(id ID, d properties, version int64) (rows, error) {
	all := rows{}
	if d == nil {
		return all, nil
	}
	var err error
	for i, index := range s.d.Indexes {
		found, tooLong := index.values(d)
		for _, values := range found {
			all[rowKey(i, values, id)] = row{i, values, id, version}
		}
		if tooLong {
			err = errors.Join(err, fmt.Errorf("%s of entity %x: %w", index.Name, id, ErrTooLong))
		}
	}
	return all, err
}

// without returns the rows that are not in other.
func (r rows) without(other rows) []row {
	var left []row
	for key, row := range r {
		if _, ok := other[key]; !ok {
			left = append(left, row)
		}
	}
	return left
}

func (r rows) add(other rows) {
	for key, row := range other {
		r[key] = row
	}
}

// column returns the values of a column of rows, as Postgres takes an array. Behind the properties are the IDs and the versions.
func (i IndexDefinition) column(all []row, k int) any {
	switch k - len(i.Properties) {
	case 0:
		return collect(all, func(r row) ID { return r.id })
	case 1:
		return collect(all, func(r row) int64 { return r.version })
	}
	switch i.Properties[k].Type {
	case Text:
		return collect(all, func(r row) string { return r.values[k].(string) })
	case Int:
		return collect(all, func(r row) int64 { return r.values[k].(int64) })
	case Float:
		return collect(all, func(r row) float64 { return r.values[k].(float64) })
	case Time:
		return collect(all, func(r row) time.Time { return r.values[k].(time.Time) })
	}
	return collect(all, func(r row) bool { return r.values[k].(bool) })
}

func collect[T any](all []row, get func(row) T) []T {
	values := make([]T, len(all))
	for i, r := range all {
		values[i] = get(r)
	}
	return values
}
