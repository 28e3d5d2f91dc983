package ids

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
)

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// explained is an ID taken apart.
type explained struct {
	scheme scheme
	bits   uint64
	made   time.Time // the zero time without a time
	values []value   // its fields but the time, from the high bits down

	// Where its shard lives, of a map's ID; empty when the map has no such shard.
	schema, host string
}

// value is what a field of an ID holds.
type value struct {
	field
	number uint64
}

func (s scheme) explain(bits uint64) explained {
	e := explained{scheme: s, bits: bits}
	left := 64
	for _, f := range s.fields() {
		left -= f.bits
		number := bits >> left & (1<<f.bits - 1)
		switch f.name {
		case "":
		case "time":
			e.made = time.UnixMilli(s.epoch.UnixMilli() + int64(number)).UTC()
		default:
			e.values = append(e.values, value{f, number})
		}
	}
	if s.m != nil {
		id := shards.ID(bits)
		e.made = s.m.Time(id)
		if n, err := s.m.ForID(id); err == nil {
			e.schema, e.host = s.m.Schema(n), s.m.Host(n).Name
		}
	}
	return e
}

// inner returns what the fields within a field hold.
func (v value) inner() []value {
	var values []value
	left := v.bits
	for _, f := range v.within {
		left -= f.bits
		values = append(values, value{f, v.number >> left & (1<<f.bits - 1)})
	}
	return values
}

// id is the ID as its owner writes it: a map's as Postgres's bigint does, any other without a sign.
func (e explained) id() string {
	if e.scheme.m != nil {
		return strconv.FormatInt(int64(e.bits), 10)
	}
	return strconv.FormatUint(e.bits, 10)
}

// place returns schema and host as a person is to read them.
func (e explained) place() (schema, host string) {
	if e.schema == "" {
		return "-", "no such shard"
	}
	return e.schema, e.host
}

// MarshalJSON writes the fields by their owner's names. The ID is a text, since many programs read
// the numbers of JSON as doubles, which do not hold 64 bits.
func (e explained) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	var failed error
	add := func(name string, value any) {
		text, err := json.Marshal(value)
		failed = errors.Join(failed, err)
		fmt.Fprintf(&b, ",%q:%s", name, text)
	}
	add("id", e.id())
	if e.scheme.layout.HasTime() {
		add("time", e.made)
	}
	for _, v := range e.values {
		add(v.name, v.number)
		for _, inner := range v.inner() {
			add(inner.name, inner.number)
		}
	}
	if e.scheme.m != nil {
		add("schema", e.schema)
		add("host", e.host)
	}
	add("layout", e.scheme.text())
	if e.scheme.layout.HasTime() {
		add("epoch", e.scheme.epoch)
	}
	add("bits", fmt.Sprintf("%064b", e.bits))
	return append(append([]byte{'{'}, b.Bytes()[1:]...), '}'), failed
}

// idTable returns a row for each of at least one ID, all of one scheme, and the head.
func idTable(ids []explained) [][]string {
	s := ids[0].scheme
	head := []string{">ID"}
	if s.layout.HasTime() {
		head = append(head, "TIME")
	}
	for _, v := range ids[0].values {
		head = append(head, ">"+strings.ToUpper(v.name))
	}
	if s.m != nil {
		head = append(head, "SCHEMA", "HOST")
	}
	rows := [][]string{head}
	for _, e := range ids {
		row := []string{e.id()}
		if s.layout.HasTime() {
			row = append(row, e.made.Format(timeFormat))
		}
		for _, v := range e.values {
			row = append(row, strconv.FormatUint(v.number, 10))
		}
		if s.m != nil {
			schema, host := e.place()
			row = append(row, schema, host)
		}
		rows = append(rows, row)
	}
	return rows
}

// printIDs prints a table of IDs, or a list in JSON.
func printIDs(a *cli.App, ids []explained) error {
	return a.Print(ids, func() {
		if a.Output == cli.Plain {
			for _, id := range ids {
				fmt.Fprintln(a.Stdout, id.id())
			}
			return
		}
		a.Table(idTable(ids))
	})
}
