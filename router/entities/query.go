package entities

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Index is one index of a store.
type Index struct {
	s     *Store
	at    int
	table table
	err   error
}

// Index returns the index with a name. If the definition does not have it, its methods return [ErrNoIndex].
func (s *Store) Index(name string) Index {
	i := slices.IndexFunc(s.indexes, func(t table) bool { return t.Name == name })
	if i < 0 {
		return Index{err: fmt.Errorf("%s: %w", name, ErrNoIndex)}
	}
	return Index{s: s, at: i, table: s.indexes[i]}
}

// Page selects the entities of a page.
type Page struct {
	// From and To limit the second property to [From, To). Nil is no limit.
	From, To any
	Falling  bool   // the highest values first
	After    string // returned with the page before; empty for the first page
	Limit    int    // largest number of entities; defaults to 50
}

// GetAll returns all entities whose first property has the value lead, ordered by the other properties and then by ID. See
// [Index.Page]; GetAll ignores Limit and After.
func (x Index) GetAll(ctx context.Context, lead any, page Page) ([]Entity, error) {
	var all []Entity
	page.After, page.Limit = "", 500
	for {
		some, next, err := x.Page(ctx, lead, page)
		all = append(all, some...)
		if page.After = next; err != nil || next == "" {
			return all, err
		}
	}
}

// Page returns entities whose first property has the value lead, ordered by the other properties and then by ID, and the After
// of the next page, which is empty after the last page. It reads index rows from one shard, then the entities. It skips each
// entity whose document does not have the index row, and continues until the page is full.
//
// A page starts after an index row, not at an offset: an entity whose row does not change is on exactly one page, even if
// others come and go. Values have the types of [Kind], types made of them, or those of other integers. Errors are [ErrNoIndex], a [shards.FieldError] for a value of
// another type or an After that Page did not return, and those of a [router.Shard] and of [Store.GetMany].
func (x Index) Page(ctx context.Context, lead any, page Page) ([]Entity, string, error) {
	if x.err != nil {
		return nil, "", x.err
	}
	if page.Limit <= 0 {
		page.Limit = 50
	}
	q, err := x.query(lead, page)
	if err != nil {
		return nil, "", err
	}
	shard, err := x.s.r.ForShard(x.s.hash(q.args[0]))
	if err != nil {
		return nil, "", err
	}
	var full []Entity
	for {
		found, err := shard.Query(ctx, q.sql, q.args...)
		if err != nil {
			return nil, "", err
		}
		hints, err := pgx.CollectRows(found, x.table.scan(x.at))
		if err != nil {
			return nil, "", err
		}
		entities, err := x.s.fetch(ctx, collect(hints, func(r row) ID { return r.id }))
		if err != nil {
			return nil, "", err
		}
		for k, hint := range hints {
			e, ok := entities[hint.id]
			if !ok {
				continue
			}
			d, err := x.s.of(e.Body)
			if err != nil {
				return nil, "", err
			}
			if !x.table.has(d, hint.values) {
				continue
			}
			if full = append(full, e); len(full) == page.Limit {
				next := ""
				if k < len(hints)-1 || len(hints) == page.Limit {
					next = cursor(hint)
				}
				return full, next, nil
			}
		}
		if len(hints) < page.Limit {
			return full, "", nil
		}
		page.After = cursor(hints[len(hints)-1])
		if q, err = x.query(lead, page); err != nil {
			return nil, "", err
		}
	}
}

// statement is a query for index rows.
type statement struct {
	sql  string
	args []any
}

func (x Index) query(lead any, page Page) (statement, error) {
	var q statement
	arg := func(v any) string {
		q.args = append(q.args, v)
		return fmt.Sprintf("$%d", len(q.args))
	}
	properties := x.table.Properties
	v, err := x.typed(lead, 0)
	if err != nil {
		return q, err
	}
	where := []string{quoted(properties[0].Name) + " = " + arg(v)}
	for op, limit := range map[string]any{">=": page.From, "<": page.To} {
		if limit == nil {
			continue
		}
		if v, err = x.typed(limit, 1); err != nil {
			return q, err
		}
		where = append(where, quoted(properties[1].Name)+" "+op+" "+arg(v))
	}
	var names, order []string
	for _, p := range properties {
		names = append(names, quoted(p.Name))
	}
	names = append(names, "entity_id") // decides between rows with the same values
	op, direction := ">", ""
	if page.Falling {
		op, direction = "<", " desc"
	}
	for _, n := range names[1:] {
		order = append(order, n+direction)
	}
	if page.After != "" {
		values, err := x.after(page.After)
		if err != nil {
			return q, err
		}
		var from []string
		for _, v := range values {
			from = append(from, arg(v))
		}
		where = append(where, fmt.Sprintf("(%s) %s (%s)", strings.Join(names[1:], ", "), op, strings.Join(from, ", ")))
	}
	q.sql = fmt.Sprintf("select %s from %s where %s order by %s limit %s", x.table.list, x.table.Name,
		strings.Join(where, " and "), strings.Join(order, ", "), arg(page.Limit))
	return q, nil
}

// typed converts a value to the type of a property.
func (x Index) typed(v any, property int) (any, error) {
	if property >= len(x.table.Properties) {
		return nil, &shards.FieldError{Field: x.table.Name, Found: fmt.Sprint(v), Expected: "no limits: the index has one property"}
	}
	p := x.table.Properties[property]
	var fits bool
	switch at, isTime := v.(time.Time); {
	case isTime:
		v, fits = inMicroseconds(at), p.Type == Time
	default:
		plain, ok := scalar(v)
		if r := reflect.ValueOf(v); r.Kind() == reflect.Float64 || r.Kind() == reflect.Float32 {
			plain, ok = r.Float()+0, true // no -0
		}
		if n, isInt := plain.(int64); isInt && p.Type == Float {
			plain = float64(n)
		}
		fits = ok && kindOf(plain) == p.Type
		if fits {
			v = plain
		}
	}
	if !fits {
		return nil, &shards.FieldError{Field: x.table.Name + "." + p.Name, Found: fmt.Sprintf("a %T", v), Expected: "a value of type " + string(p.Type)}
	}
	return v, nil
}

// cursor returns an index row without its first property, as JSON.
func cursor(r row) string {
	text, _ := json.Marshal(append(slices.Clone(r.values[1:]), fmt.Sprintf("%x", r.id))) // of plain values
	return string(text)
}

// after parses a cursor.
func (x Index) after(text string) ([]any, error) {
	wrong := &shards.FieldError{Field: "After", Found: fmt.Sprintf("%q", text), Expected: "what Page has returned"}
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil || len(raw) != len(x.table.Properties) {
		return nil, wrong
	}
	values := make([]any, len(raw))
	for k := range raw {
		kind := Text
		if k < len(raw)-1 {
			kind = x.table.Properties[k+1].Type
		}
		if values[k] = value(raw[k], kind); values[k] == nil {
			return nil, wrong
		}
	}
	id, err := hex.DecodeString(values[len(raw)-1].(string))
	if err != nil || len(id) != len(ID{}) {
		return nil, wrong
	}
	values[len(raw)-1] = ID(id)
	return values, nil
}
