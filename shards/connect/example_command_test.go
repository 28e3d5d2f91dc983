//go:build unix

package connect_test

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

func ExampleCommand() {
	command := connect.Command{Words: []string{"sh", "-c", `echo "token for $KILOSHARD_HOST, $PGUSER at $PGHOST:$PGPORT"`}}
	host := shards.Host{Name: "pg-a", DSN: "postgres://app@10.0.0.1/photos"}
	c, err := command.Credentials(context.Background(), host)
	fmt.Println(c.Password, err)
	fmt.Println(c)
	// Output:
	// token for pg-a, app at 10.0.0.1:5432 <nil>
	// the DSN's user
}
