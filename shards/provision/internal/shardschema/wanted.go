package shardschema

import (
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/provision/internal/mapsql"
	"github.com/kiloshard/kiloshard/sql"
)

// Wanted is the schema that a map wants for each shard.
type Wanted struct {
	m       *shards.Map
	params  sql.Params
	version string
}

// For returns the schemas of a map.
func For(m *shards.Map) *Wanted {
	w := &Wanted{m: m, params: mapsql.Params(m)}
	w.version = sql.Version(w.Script(0))
	return w
}

// Script returns the script that creates the objects of a shard. Its schema must exist.
func (w *Wanted) Script(n shards.Number) string { return sql.Shard(w.params, int(n), w.m.Schema(n)) }

func (w *Wanted) functions(n shards.Number) []sql.Function { return sql.Functions(w.Script(n)) }

// State compares a shard by its version. With repair, functions that were changed make it old.
func (w *Wanted) State(found Found, versions catalog.Versions, functions catalog.Functions, n shards.Number, repair bool) catalog.State {
	switch {
	case !found.Complete:
		return catalog.Missing
	case repair && functions.Changed(w.Script(n)):
		return catalog.Old
	}
	return versions.State(w.versioned(n), w.version)
}

// versioned is the object whose comment holds the version.
func (w *Wanted) versioned(n shards.Number) string { return w.m.Schema(n) + ".next_id" }

// CheckSequences returns a statement that fails unless each schema has an ID sequence that makes IDs: [Wanted.Script]
// keeps an existing relation of that name.
func (w *Wanted) CheckSequences(schemas []string) string {
	const statement = `
DO $kiloshard$
DECLARE
  wrong text;
BEGIN
  SELECT s.name INTO wrong FROM pg_catalog.unnest('{%s}'::name[]) s (name)
    LEFT JOIN pg_class c ON c.relnamespace = s.name::regnamespace AND c.relname = 'next_id_seq'
    LEFT JOIN pg_sequence q ON q.seqrelid = c.oid AND q.seqtypid = 'bigint'::regtype AND q.seqincrement = 1
      AND q.seqcache = 1 AND q.seqmax = %d AND NOT q.seqcycle
    WHERE q.seqrelid IS NULL ORDER BY 1 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '%%.next_id_seq was there before and cannot make IDs', wrong USING ERRCODE = '%s',
      HINT = 'Expected a sequence made by: CREATE SEQUENCE … MAXVALUE %[2]d';
  END IF;
END
$kiloshard$;
`
	if len(schemas) == 0 {
		return ""
	}
	return fmt.Sprintf(statement, strings.Join(schemas, ","), w.m.Layout().MaxSequenceValue(), sql.Refused)
}
