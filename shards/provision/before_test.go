package provision_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// beforeData is the template data of the previous release's scripts.
type beforeData struct {
	Number      int
	Schema      string
	Name        string
	Start, Step int64
}

// before returns a map of 8 shards on two hosts, as installed by the previous release, with a row in each shard.
func before(t *testing.T) *shards.Map {
	t.Helper()
	c := shardtest.MapConfig(8, shardtest.Hosts(t, 2))
	c.Strategy = shards.Strategy{By: shards.Directory}
	c.Generators = []shards.Generator{
		{Kind: shards.Interleaved, Names: []string{"order"}, Of: 64},
		{Kind: shards.Row, Names: []string{"invoice"}, Hosts: []string{"pg-b"}},
		{Kind: shards.UUIDv7, Names: []string{"event"}},
	}
	m := build(t, c)
	for _, host := range m.Hosts() {
		// The version differs even while the engine has not changed since the previous release.
		script := rendered(t, "engine", beforeData{}) + "update kiloshard.settings set engine = 'before';" + rendered(t, "ledger", beforeData{}) + rendered(t, "uuidv7", beforeData{})
		if host.Name == "pg-b" {
			script += rendered(t, "row", beforeData{Schema: "kiloshard", Name: "invoice"})
		}
		for _, n := range m.NumbersOn(host.Name) {
			d := beforeData{Number: int(n), Schema: m.Schema(n)}
			script += rendered(t, "shard", d) + rendered(t, "directory", d)
			d.Name, d.Step = "event", 64
			script += rendered(t, "uuid", d)
			d.Name = "order"
			d.Start, d.Step = m.Generators()[0].Progression(int(n))
			script += rendered(t, "progression", d) + strings.ReplaceAll(`
				create table SCHEMA.photos (id bigint primary key default SCHEMA.next_id(), number bigint default SCHEMA.next_order_id());
				insert into SCHEMA.photos default values;`, "SCHEMA", d.Schema)
		}
		on(t, host, script)
	}
	return m
}

func rendered(t *testing.T, name string, data beforeData) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "before", name+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := template.Must(template.New(name).Parse(string(text))).Execute(&b, data); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

// session opens a session to a host, for a test that needs session state.
func session(t *testing.T, host shards.Host) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), host.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
