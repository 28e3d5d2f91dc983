package move

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Status returns all moves that the ledgers of a map's hosts know, the newest last. It asks all hosts at once; if one does
// not answer, the others' moves come with the error.
func Status(ctx context.Context, m *shards.Map) ([]ledger.Move, error) {
	var mu sync.Mutex
	var all []ledger.Move
	err := eachHost(ctx, m, func(host shards.Host, conn *pgx.Conn) error {
		found, err := ledger.Read(ctx, conn, m, ledger.SourceSide)
		if err != nil {
			return err
		}
		found, err = ledger.OfSource(found, m, host.Name)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, found...)
		return err
	})
	slices.SortStableFunc(all, func(a, b ledger.Move) int { return a.Began.Compare(b.Began) })
	return all, err
}

// eachHost runs fn with a session to every host of a map at once, and joins the errors as [shards.HostError].
func eachHost(ctx context.Context, m *shards.Map, fn func(shards.Host, *pgx.Conn) error) error {
	errs := make([]error, len(m.Hosts()))
	var wg sync.WaitGroup
	for i, host := range m.Hosts() {
		wg.Go(func() {
			conn, err := session.Open(ctx, host)
			if err != nil {
				errs[i] = err
				return
			}
			defer session.Close(ctx, conn)
			if err := fn(host, conn); err != nil {
				errs[i] = &shards.HostError{Host: host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
