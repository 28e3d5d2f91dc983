package mapstore_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localetcd"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// A store fails over to a standby that had not received version 3, and another version 3 was made there. A watch
// reports it, and so does a service that starts with a copy of the lost version.

func TestPostgresOtherMapOfOneVersion(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn)
	testOtherMap(t, s, func() {
		execSQL(t, dsn, `do $$ begin
			alter table kiloshard.maps disable trigger keep_maps;
			update kiloshard.maps set document = replace(document, 'weight: 3', 'weight: 30'), made_at = made_at + interval '1 s', attempt = 'other' where version = 3;
			alter table kiloshard.maps enable trigger keep_maps;
			notify kiloshard_maps, 'photos';
		end $$`)
	})
}

func TestEtcdOtherMapOfOneVersion(t *testing.T) {
	t.Parallel()
	server := startEtcd(t, localetcd.Config{})
	testOtherMap(t, openEtcd(t, server), func() {
		client, key := etcdClient(t, server), prefixOf(t)+"photos/map"
		response, err := client.Get(newContext(t), key)
		noError(t, err)
		var record map[string]any
		noError(t, json.Unmarshal(response.Kvs[0].Value, &record))
		record["change"], record["map"] = "other", strings.Replace(record["map"].(string), "weight: 3", "weight: 30", 1)
		text, err := json.Marshal(record)
		noError(t, err)
		_, err = client.Put(newContext(t), key, string(text))
		noError(t, err)
	})
}

// testOtherMap has failOver put a map with another weight of a host in the place of version 3.
func testOtherMap(t *testing.T, s mapstore.Store, failOver func()) {
	t.Helper()
	cache := filepath.Join(t.TempDir(), "map.yaml")
	for version := range 3 {
		swap(t, s, version, version+1)
	}
	if m, err := newSource(s, cache).Load(newContext(t)); err != nil || markOf(m) != 3 {
		t.Fatalf("map %v, %v", m, err)
	}
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 3, 3)
	failOver()
	if back := checkAs[*mapstore.WentBackError](t, w.fails(t)); back.Seen != 3 || back.Found != 3 {
		t.Errorf("watching: %v", back)
	}
	m, err := newSource(s, cache).Load(newContext(t))
	if back := checkAs[*mapstore.WentBackError](t, err); back.Seen != 3 || back.Found != 3 || m != nil {
		t.Errorf("starting with a copy: %v, %v", m, err)
	}
	if m, err := newSource(s, "").Load(newContext(t)); err != nil || markOf(m) != 30 {
		t.Errorf("starting without a copy: %v, %v", m, err)
	}
	swap(t, s, 3, 4)
	checkEntry(t, w.entry(t), 4, 4)
	if m, err := newSource(s, cache).Load(newContext(t)); err != nil || markOf(m) != 4 {
		t.Errorf("version 4: %v, %v", m, err)
	}
}
