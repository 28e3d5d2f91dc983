package router_test

import (
	"testing"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

var _ pgxscan.Querier = router.Shard{}

// scany fills structs from a shard, and from a transaction in one, as it does from a pool.
func TestScany(t *testing.T) {
	t.Parallel()
	type photo struct {
		ID    int64
		Owner int64
		Title *string
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{conns: 1, dsn: execMode(mode)})
			for _, n := range []int{3, 4} {
				s := b.shard(t, n)
				check := func(q pgxscan.Querier) error {
					var one photo
					if err := pgxscan.Get(ctx, q, &one, `select * from photos where id = $1`, 1); err != nil {
						return err
					}
					if one.Owner != int64(n) || one.Title == nil {
						t.Errorf("%s was answered with %+v", s, one)
					}
					var all []*photo
					if err := pgxscan.Select(ctx, q, &all, `select * from photos`); err != nil {
						return err
					}
					if len(all) != 1 || all[0].Owner != int64(n) {
						t.Errorf("%s was answered with %+v", s, all)
					}
					if err := pgxscan.Get(ctx, q, &one, `select * from photos where id = $1`, 2); !pgxscan.NotFound(err) {
						t.Errorf("%s, no such photo: %v", s, err)
					}
					return nil
				}
				if err := check(s); err != nil {
					t.Error(err)
				}
				err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return check(tx) })
				if err != nil {
					t.Error(err)
				}
			}
			b.isFree(ctx, t)
		})
	}
}
