package entities

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

const maxTexts = 2000 // bytes in a row: Postgres takes 2700 in an entry of an index

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// document is a body of which only the top level is parsed.
type document map[string]json.RawMessage

// parse parses a body. It returns nil for a nil body.
func parse(body []byte) (document, error) {
	if body == nil {
		return nil, nil
	}
	var d document
	err := json.Unmarshal(body, &d)
	if err == nil && d == nil {
		err = errors.New("null")
	}
	if err != nil {
		return nil, fmt.Errorf("expected a JSON object as the body: %w", err)
	}
	return d, nil
}

// values returns the values of the index row of a document; nil if it has no row. Writers, the cleaner and the filter of
// queries all use it.
func (i IndexDefinition) values(d document) []any {
	for name, want := range i.Where {
		want, _ := scalar(want)
		if got := value(d[name], kindOf(want)); got != want {
			return nil
		}
	}
	row, texts := make([]any, len(i.Properties)), 0
	for k, p := range i.Properties {
		if row[k] = value(d[p.Name], p.Type); row[k] == nil {
			return nil
		}
		if text, ok := row[k].(string); ok {
			texts += len(text)
		}
	}
	if texts > maxTexts {
		return nil
	}
	return row
}

// value returns the value of a property; nil if it is missing or of another type.
func value(raw json.RawMessage, kind Kind) any {
	if len(raw) == 0 {
		return nil
	}
	var v any
	switch first := raw[0]; {
	case kind == Text && first == '"':
		var text string
		if json.Unmarshal(raw, &text) == nil {
			v = text
		}
	case kind == Int && first == '"': // a shards.ID is a string in JSON
		var text string
		if json.Unmarshal(raw, &text) == nil {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
				v = n
			}
		}
	case kind == Bool && (first == 't' || first == 'f'):
		v = first == 't'
	case (kind == Int || kind == Float) && (first == '-' || first >= '0' && first <= '9'):
		v = number(string(raw), kind)
	}
	return v
}

// number parses a number as Postgres does, which writes 1e2 as 100.
func number(text string, kind Kind) any {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	if kind == Float {
		return f + 0 // no -0
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if exact, ok := new(big.Rat).SetString(text); math.Abs(f) < 1<<63 && (f == 0 || math.Abs(f) > 1e-300) && ok && exact.IsInt() && exact.Num().IsInt64() {
		return exact.Num().Int64()
	}
	return nil
}

// scalar converts a value to the type that [value] returns.
func scalar(v any) (any, bool) {
	switch v := v.(type) {
	case string, bool, int64:
		return v, true
	case int:
		return int64(v), true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return nil, false
}

func kindOf(v any) Kind {
	switch v.(type) {
	case string:
		return Text
	case bool:
		return Bool
	}
	return Int
}

// hash returns the shard of a value of the first property.
func (s *Store) hash(lead any) shards.Number {
	if f, ok := lead.(float64); ok {
		lead = strconv.FormatFloat(f, 'g', -1, 64)
	}
	return shards.MD5Shard(fmt.Append(nil, lead), s.d.Shards)
}

// rowKey returns a key that identifies an index row: the position of the index, the values, and the entity.
func rowKey(index int, values []any, id ID) string {
	return fmt.Sprintf("%d %#v %x", index, values, id)
}

// rows are index rows by their keys.
type rows map[string]row

type row struct {
	index  int // in the definition
	values []any
	id     ID
}

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

// rowsOf returns all index rows of an entity.
func (s *Store) rowsOf(id ID, d document) rows {
	all := rows{}
	if d == nil {
		return all
	}
	for i, index := range s.d.Indexes {
		if values := index.values(d); values != nil {
			all[rowKey(i, values, id)] = row{i, values, id}
		}
	}
	return all
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

// column returns the values of a column of rows, as Postgres takes an array; that behind the last is the IDs'.
func (i IndexDefinition) column(all []row, k int) any {
	if k == len(i.Properties) {
		return collect(all, func(r row) ID { return r.id })
	}
	switch i.Properties[k].Type {
	case Text:
		return collect(all, func(r row) string { return r.values[k].(string) })
	case Int:
		return collect(all, func(r row) int64 { return r.values[k].(int64) })
	case Float:
		return collect(all, func(r row) float64 { return r.values[k].(float64) })
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
