package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/kiloshard/kiloshard/router"
)

var errNoName = errors.New("a shard cannot be opened by a name: use sqldb.Open")

// Open returns a *sql.DB of a shard. It does not connect, and cannot fail. The handle is safe for concurrent use. It uses no
// connection while it is idle, so keep it, or make one for each use. Close ends its goroutine; the router stays open.
func Open(shard router.Shard) *sql.DB { return sql.OpenDB(connector{shard}) }

type connector struct{ shard router.Shard }

func (c connector) Connect(context.Context) (driver.Conn, error) { return &conn{shard: c.shard}, nil }

func (c connector) Driver() driver.Driver { return nameless{} }

// nameless is the driver of our connectors, which database/sql requires. It opens nothing.
type nameless struct{}

func (nameless) Open(string) (driver.Conn, error) { return nil, errNoName }
