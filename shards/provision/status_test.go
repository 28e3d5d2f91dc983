package provision_test

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/provision"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	on(t, m.Hosts()[0], "drop schema shard_00003 cascade")
	c := m.Config()
	c.Hosts = append(c.Hosts[:1:1], c.Hosts[1])
	c.Hosts[1].DSN = "postgres://app:s3cr3t-pa55@127.0.0.1:1/app"
	statuses := provision.Status(t.Context(), build(t, c))
	if len(statuses) != 2 {
		t.Fatalf("got %d hosts, expected 2", len(statuses))
	}
	up, down := statuses[0], statuses[1]
	if up.Err != nil || up.Shards != 7 || up.Expected != 8 || up.Bytes == 0 || !strings.Contains(up.Version, ".") {
		t.Errorf("got %+v, expected 7 of 8 shards", up)
	}
	if down.Err == nil || down.Expected != 8 || strings.Contains(down.Err.Error(), "s3cr3t-pa55") {
		t.Errorf("got %+v, expected an error without the password", down)
	}
}
