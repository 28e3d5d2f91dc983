package mapstore_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// TestPrintsNoPassword prints stores and sources in every way.
func TestPrintsNoPassword(t *testing.T) {
	t.Parallel()
	const sentinel = "s3ntinel"
	config := newConfig(1)
	config.Hosts[0].DSN = "postgres://app:" + sentinel + "@127.0.0.1:1/app"
	for _, store := range []shards.Store{
		{Kind: shards.StoreFile},
		{Kind: shards.StorePostgres, DSN: "postgres://app:" + sentinel + "@127.0.0.1:1/maps"},
		{Kind: shards.StoreEtcd, Endpoints: []string{"https://127.0.0.1:1"}, User: "app", Password: sentinel},
	} {
		config.Store = store
		s := open(t, config, func(o *mapstore.Options) { o.Path = filepath.Join(t.TempDir(), "kiloshard.yaml") })
		source := mapstore.SourceConfig{Store: s}
		for _, v := range []any{s, source, mapstore.NewSource(source), mapstore.Change{Config: config}} {
			var text bytes.Buffer
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
				fmt.Fprintf(&text, verb, v)
				fmt.Fprintf(&text, verb, []any{v})
			}
			slog.New(slog.NewTextHandler(&text, nil)).Info("", "v", v)
			slog.New(slog.NewJSONHandler(&text, nil)).Info("", "v", v)
			if strings.Contains(text.String(), sentinel) {
				t.Errorf("%s, %T: the password is in %s", store.Kind, v, text.String())
			}
		}
	}
}
