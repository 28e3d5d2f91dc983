package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql/special"
)

// IdentityError says that a database holds shards of another cluster than the map's, or with another epoch, layout or
// schema prefix. Only the statement that detects this was sent to it.
type IdentityError struct {
	Field           string // cluster, schema_prefix, epoch or layout
	Found, Expected string
}

// Error names what was found and what was expected.
func (e *IdentityError) Error() string {
	if e.Field == "cluster" {
		return fmt.Sprintf("this database belongs to cluster %q, expected cluster %q: the config or its DSN is that of another cluster", e.Found, e.Expected)
	}
	return fmt.Sprintf("this database has %s %s, expected %s %s as the map says: it cannot change while there are shards", e.Field, e.Found, e.Field, e.Expected)
}

// readIdentity reads a database's settings. Somebody else may have made a relation of this name, so no code of theirs runs.
var readIdentity = "set local statement_timeout = 0;\n" + special.Refuse("kiloshard.settings") + "\nselect pg_catalog.to_jsonb(s) from kiloshard.settings s"

// checkIdentity compares a database's encoding with UTF8, and its settings with those that the host's map expects. It accepts a database in which
// nothing is installed, one of an older release whose settings the role may not read, and one in which somebody else
// made that table, which kiloshard verify reports.
// It waits for a lock for 30 seconds, unless the session has a lock_timeout; the error then says who holds it.
func checkIdentity(ctx context.Context, conn *pgconn.PgConn, host shards.Host) error {
	if err := checkEncoding(conn, host); err != nil {
		return err
	}
	expected, ok := host.Identity()
	if !ok {
		return nil
	}
	results, err := conn.Exec(ctx, readIdentity).ReadAll()
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000" || pg.Code == "42501" || pg.Code == "42809" || pg.Code == special.Refused) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading kiloshard.settings: %w", NameHolders(ctx, conn, err))
	}
	last := results[len(results)-1]
	if len(last.Rows) == 0 {
		return nil
	}
	return compareIdentity(last.Rows[0][0], expected)
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
		return &IdentityError{"cluster", found.Cluster, expected.Cluster}
	case found.SchemaPrefix != expected.SchemaPrefix:
		return &IdentityError{"schema_prefix", found.SchemaPrefix, expected.SchemaPrefix}
	case layout != expected.Layout:
		return &IdentityError{"layout", usable(layout), usable(expected.Layout)}
	case layout.HasTime() && !found.Epoch.Equal(expected.Epoch):
		return &IdentityError{"epoch", moment(found.Epoch), moment(expected.Epoch)}
	}
	return nil
}

func usable(l shards.Layout) string { return l.String() + " (usable bits)" }

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
