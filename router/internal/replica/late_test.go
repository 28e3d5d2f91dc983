package replica_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/replica"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// late is a connection that calls hold once, between a read from the network and its return.
type late struct {
	net.Conn
	hold func()
}

func (c *late) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if hold := c.hold; hold != nil {
		c.hold = nil
		hold()
	}
	return n, err
}

// TestAnswerOvertaken holds up a standby's answer until a later measurement of the same standby is known. The answer is older than
// the measurement, and the standby is not at fault.
func TestAnswerOvertaken(t *testing.T) {
	t.Parallel()
	first := shardtest.OwnServer(t)
	standby := shardtest.Standby(t, first, "standby")
	set := newSet(t, first, standby)
	want := replica.Want{MaxLag: time.Minute, ReplicaOnly: true, Wait: time.Minute}
	if _, err := set.Find(t.Context(), &want, 0); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(standby.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	var wire *late
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		wire = &late{Conn: conn}
		return wire, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	writer := connect(t, first)
	wire.hold = func() {
		if _, err := writer.Exec(t.Context(), `create table written ()`); err != nil {
			t.Error(err)
		}
		position, err := replica.ScanPosition(writer.QueryRow(t.Context(), replica.PositionQuery))
		if err != nil {
			t.Error(err)
		}
		later := want
		later.After = position
		if _, err := set.Find(t.Context(), &later, 0); err != nil {
			t.Error(err)
		}
	}
	seen, err := set.Ask(t.Context(), 0, conn.PgConn())
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Check(0, &want, time.Now(), seen); err != nil {
		t.Error(err)
	}
}
