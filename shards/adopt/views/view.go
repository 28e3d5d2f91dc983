package views

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
)

// view is a view of one shard, before it is made.
type view struct {
	name     string // in quotes, with its schema
	plain    string // without
	query    string // what follows "create view NAME"
	columns  []oldColumn
	defaults []string // parts of alter view: column … set default …
	grants   []string // statements
	after    []string // statements that make its trigger
}

// maker makes the views of shards by one plan.
type maker struct {
	m        *shards.Map
	strategy adopt.Strategy
	old      []*oldTable
}

func quote(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// views returns the views of a shard, in the order in which they are made.
func (k *maker) views(n shards.Number) []view {
	var all []view
	for i, o := range k.old {
		if o.Copy {
			hidden := k.view(n, o, fmt.Sprintf("kiloshard_rows_%d", i+1))
			all = append(all, hidden, k.copied(n, o, hidden, fmt.Sprintf("kiloshard_insert_%d", i+1)))
			continue
		}
		all = append(all, k.view(n, o, o.Table.Table))
	}
	return all
}

// view returns the view of a table.
func (k *maker) view(n shards.Number, o *oldTable, name string) view {
	schema := k.m.Schema(n)
	v := view{name: quote(schema, name), plain: name, columns: o.columns}
	var columns []string
	for _, c := range o.columns {
		columns = append(columns, "t."+quote(c.Name))
	}
	condition := o.Way().Condition("t", func(key string) string { return fmt.Sprintf("%s = %d", k.strategy.Shard(key, k.m.Len()), n) })
	v.query = fmt.Sprintf(" with (security_invoker = true) as select %s from %s t where %s with cascaded check option", strings.Join(columns, ", "), o.from, condition)
	if o.IDs == adopt.NextID {
		v.defaults = []string{fmt.Sprintf("alter column %s set default %s.next_id()", quote(o.ID), quote(schema))}
	}
	v.grants = grants(v.name, o)
	return v
}

// grants returns statements that repeat the rights on the old table. The view is security_invoker, so it gives none that the old table does not.
func grants(name string, o *oldTable) []string {
	var all []string
	for _, g := range o.grants {
		all = append(all, g.On(name))
	}
	return all
}

// fingerprint returns a text that differs if the views do.
func fingerprint(all []view, rights []ledger.Right) string {
	hash := sha256.New()
	for _, v := range all {
		fmt.Fprintf(hash, "%q %q %v %q %q %q\n", v.name, v.query, v.columns, v.defaults, v.grants, v.after)
	}
	fmt.Fprintf(hash, "%q", rights)
	return hex.EncodeToString(hash.Sum(nil)[:16])
}
