package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/kiloshard/kiloshard/router"
)

var errNoName = errors.New("a shard has no name to open it by: use sqldb.Open")

// Open returns a handle of a shard for code that was written for database/sql. It connects to nothing and cannot fail.
// The handle is safe for concurrent use. It holds no connection while it is idle, and may be kept or made anew for
// each use; Close ends its goroutine and leaves the router as it is.
func Open(shard router.Shard) *sql.DB { return sql.OpenDB(connector{shard}) }

type connector struct{ shard router.Shard }

func (c connector) Connect(context.Context) (driver.Conn, error) { return &conn{shard: c.shard}, nil }

func (c connector) Driver() driver.Driver { return nameless{} }

// nameless is the driver that database/sql asks a connector for. Nothing can be opened by it.
type nameless struct{}

func (nameless) Open(string) (driver.Conn, error) { return nil, errNoName }
