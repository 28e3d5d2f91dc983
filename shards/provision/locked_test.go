package provision_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/provision"
)

// TestLockedSequence: another session locks the sequence of a shard and does not release it.
func TestLockedSequence(t *testing.T) {
	t.Parallel()
	m := created(t, 8)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	holder, err := pgx.Connect(ctx, m.Host(2).ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(context.Background()) }()
	if _, err := holder.Exec(ctx, "begin; alter sequence shard_00002.next_id_seq rename to other"); err != nil {
		t.Fatal(err)
	}
	config := m.Config()
	for i := range config.Hosts {
		config.Hosts[i].DSN += "&lock_timeout=1"
	}
	_, err = provision.Verify(ctx, build(t, config))
	var pg *pgconn.PgError
	want := fmt.Sprintf("shard_00002.next_id_seq by process %d, role ", holder.PgConn().PID())
	if !errors.As(err, &pg) || pg.Code != "55P03" || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, expected %q", err, want)
	}
}
