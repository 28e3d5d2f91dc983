package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect/internal/guard"
	"github.com/kiloshard/kiloshard/sql/special"
)

// IdentityError says that a database holds shards of another cluster than the map's, or with another epoch, layout,
// schema prefix or strategy. Only the statement that detects this was sent to it.
type IdentityError struct {
	Field           string // cluster, schema_prefix, epoch, layout or strategy
	Found, Expected string
	Err             error // of a strategy: what would become of keys
}

// Error names what was found and what was expected.
func (e *IdentityError) Error() string {
	if e.Field == "cluster" {
		return fmt.Sprintf("this database belongs to cluster %q, expected cluster %q: the config or its DSN is that of another cluster", e.Found, e.Expected)
	}
	if e.Field == "strategy" {
		return fmt.Sprintf("the keys of this database's shards go by strategy %s, and by the map they would go by %s: %v; expected a map with the former; "+
			"after their rows were moved, kiloshard map edit --keys-moved records the latter", shortened(e.Found), shortened(e.Expected), e.Err)
	}
	return fmt.Sprintf("this database has %s %s, expected %s %s as the map says: it cannot change while there are shards", e.Field, e.Found, e.Field, e.Expected)
}

// Unwrap returns what would become of keys, or nil.
func (e *IdentityError) Unwrap() error { return e.Err }

// shortened returns a strategy, of many ranges their beginning.
func shortened(keys string) string {
	if len(keys) > 200 {
		return strings.ToValidUTF8(keys[:200], "") + "…"
	}
	return keys
}

// CheckKeys compares the strategies of a host's settings and of a map, by which each key must keep its shard. A map may have
// fewer ranges: that of a service may be older, and keys of the others have no shard there. It accepts settings of a release
// that recorded no strategy.
func CheckKeys(found, expected string) error {
	if found == "" || expected == "" {
		return nil
	}
	err := shards.CheckKeys(found, expected)
	if err == nil || shards.FewerRanges(found, expected) {
		return nil
	}
	return &IdentityError{Field: "strategy", Found: found, Expected: expected, Err: err}
}

// beforeSettings stands before a query of the settings: somebody else may have made a relation of this name, and no code of theirs runs.
var beforeSettings = "set local statement_timeout = 0;\n" + special.Refuse("kiloshard.settings")

// readIdentity reads a database's settings, and of the strategy its SHA-256.
var readIdentity = beforeSettings + `
	select pg_catalog.to_jsonb(s) operator(pg_catalog.-) 'keys'::text,
		pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.to_jsonb(s) operator(pg_catalog.->>) 'keys'::text, 'UTF8')), 'hex')
	from kiloshard.settings s`

// readKeys reads the strategy, which may be long, where it is not the same as the map's.
var readKeys = beforeSettings + `
	select pg_catalog.to_jsonb(s) operator(pg_catalog.->>) 'keys'::text from kiloshard.settings s`

// checkIdentity compares a database's encoding with UTF8, and its settings with those that the host's map expects. It accepts a database in which
// nothing is installed, one of an older release whose settings the role may not read, and one in which somebody else
// made that table, which kiloshard verify reports.
// It waits for a lock for 30 seconds, unless the session has a lock_timeout; the error then says who holds it.
func checkIdentity(ctx context.Context, conn *pgconn.PgConn, host shards.Host) error {
	defer guard.End(conn)
	if err := checkEncoding(conn, host); err != nil {
		return err
	}
	expected, ok := host.Identity()
	if !ok {
		return nil
	}
	row, err := guard.ReadRow(ctx, conn, readIdentity, 2)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000" || pg.Code == "42501" || pg.Code == "42809" || pg.Code == special.Refused) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading kiloshard.settings: %w", NameHolders(ctx, conn, err))
	}
	if row == nil {
		return nil
	}
	if err := compareIdentity(row[0], expected); err != nil || row[1] == nil || string(row[1]) == expected.KeysSum() {
		return err
	}
	row, err = guard.ReadRow(ctx, conn, readKeys, 1)
	if err != nil {
		return fmt.Errorf("reading kiloshard.settings: %w", NameHolders(ctx, conn, err))
	}
	if row == nil {
		return nil
	}
	return CheckKeys(string(row[0]), expected.Keys)
}

// checkAnyCluster is [checkIdentity] for a host of any cluster.
func checkAnyCluster(_ context.Context, conn *pgconn.PgConn, host shards.Host) error {
	defer guard.End(conn)
	return checkEncoding(conn, host)
}

// compareIdentity compares the row of kiloshard.settings, as JSON.
func compareIdentity(row []byte, expected shards.Identity) error {
	var found struct {
		Cluster      string    `json:"cluster"`
		SchemaPrefix string    `json:"schema_prefix"`
		Epoch        time.Time `json:"epoch"`
		TimeBits     int       `json:"time_bits"`
		ShardBits    int       `json:"shard_bits"`
		TypeBits     int       `json:"type_bits"` // missing in a version that knew no types
		SequenceBits int       `json:"sequence_bits"`
	}
	if err := json.Unmarshal(row, &found); err != nil {
		return fmt.Errorf("kiloshard.settings: %w", err)
	}
	layout := shards.Layout{Time: found.TimeBits, Shard: found.ShardBits, Type: found.TypeBits, Sequence: found.SequenceBits}
	switch {
	case found.Cluster != expected.Cluster:
		return &IdentityError{Field: "cluster", Found: found.Cluster, Expected: expected.Cluster}
	case found.SchemaPrefix != expected.SchemaPrefix:
		return &IdentityError{Field: "schema_prefix", Found: found.SchemaPrefix, Expected: expected.SchemaPrefix}
	case layout != expected.Layout:
		return &IdentityError{Field: "layout", Found: usable(layout), Expected: usable(expected.Layout)}
	case layout.HasTime() && !found.Epoch.Equal(expected.Epoch):
		return &IdentityError{Field: "epoch", Found: moment(found.Epoch), Expected: moment(expected.Epoch)}
	}
	return nil
}

func usable(l shards.Layout) string { return l.String() + " (usable bits)" }

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
