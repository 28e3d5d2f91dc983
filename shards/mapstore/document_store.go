package mapstore

import (
	"context"

	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// documentStore keeps the versions of a document: in a file, in Postgres or in etcd. It is safe for concurrent use. ctx
// limits each request.
type documentStore interface {
	String() string // its kind and address, without a password

	// Load returns the current version, nil for none.
	Load(ctx context.Context) (*backend.Version, error)

	// Swap makes the version that next proposes the current one, and returns it with its time. It returns a
	// [backend.ConflictError], and changes nothing, if the current version is not from, 0 for none.
	Swap(ctx context.Context, from int, next backend.Propose) (*backend.Version, error)

	// Check returns the error that Swap would return from the current version, as far as it can without a change.
	Check(ctx context.Context, next backend.Propose) error

	// Page returns some versions below a number, newest first, and none at the end. The first page is below
	// [math.MaxInt]. It may return versions with an error.
	Page(ctx context.Context, below int) ([]*backend.Version, error)

	// Follow reports the current version, and each change of it, from one goroutine until ctx ends. It limits its requests
	// itself, and may report the same version again.
	Follow(ctx context.Context, report backend.Report)

	Close() error
}
