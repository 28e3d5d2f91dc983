package prove_test

import (
	"embed"
	"fmt"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// subject is a way to make IDs that the suite is run on.
type subject string

const (
	kiloshard subject = "kiloshard"
	published subject = "published" // Instagram's function
	bare      subject = "bare"      // a sequence without a clock
)

// The shards of every server, by what the load does to them.
const (
	hot     shards.Number = 7    // half of the sessions, without a pause
	lively  shards.Number = 4095 // some sessions, with pauses
	idle    shards.Number = 0    // sessions that all wait, and then call at the same moment
	another shards.Number = 8191 // another one like it
)

var (
	numbers = []shards.Number{hot, lively, idle, another}
	epoch   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	layout  = shards.DefaultLayout
)

//go:embed published.sql bare.sql stops.sql
var files embed.FS

var otherShards = template.Must(template.ParseFS(files, "*.sql"))

func schema(number shards.Number) string { return fmt.Sprintf("shard_%05d", number) }

// database returns what a database needs before it has shards.
func (s subject) database() string {
	if s != kiloshard {
		return ""
	}
	script, _ := sql.Engine(params())
	return script
}

// shard returns what makes one shard, with a table whose rows draw their IDs by default.
//
// The table has no primary key, which would stop what the suite looks for; and it is unlogged, so that the WAL is of
// the IDs alone, and no more of it is flushed than they ask for themselves.
func (s subject) shard(t *testing.T, number shards.Number) string {
	t.Helper()
	var b strings.Builder
	if s != kiloshard {
		data := struct {
			Number            shards.Number
			Schema            string
			EpochMilliseconds int64
		}{number, schema(number), epoch.UnixMilli()}
		if err := otherShards.ExecuteTemplate(&b, string(s)+".sql", data); err != nil {
			t.Fatal(err)
		}
	} else {
		b.WriteString(sql.Shard(params(), int(number), schema(number)))
	}
	fmt.Fprintf(&b, "\nCREATE UNLOGGED TABLE %[1]s.photos (id bigint NOT NULL DEFAULT %[1]s.next_id(), session int);", schema(number))
	return b.String()
}

func params() sql.Params {
	return sql.Params{
		Cluster: "prove", SchemaPrefix: "shard_", Epoch: epoch, End: layout.End(epoch),
		TimeBits: layout.TimeBits(), ShardBits: layout.Shard, SequenceBits: layout.Sequence,
	}
}
