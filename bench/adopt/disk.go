package adopt

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// sampleInterval is the time between two looks at the size of databases.
const sampleInterval = 250 * time.Millisecond

// sampler looks at the size of databases while a step runs.
type sampler struct {
	conn *pgx.Conn
	stop context.CancelFunc
	done chan error
	peak int64
	wal  string // position when it began
}

const sizeOf = `select sum(pg_database_size(d))::bigint from unnest($1::text[]) d`

// sample begins to look at databases of a host's server, until end.
func sample(ctx context.Context, host shards.Host, databases ...string) (*sampler, error) {
	conn, err := pgx.Connect(ctx, host.ConnString())
	if err != nil {
		return nil, err
	}
	s := &sampler{conn: conn, done: make(chan error, 1)}
	if err := conn.QueryRow(ctx, `select pg_current_wal_insert_lsn()::text`).Scan(&s.wal); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	sampling, stop := context.WithCancel(ctx)
	s.stop = stop
	go func() {
		for {
			if err := s.look(ctx, databases); err != nil {
				s.done <- err
				return
			}
			select {
			case <-time.After(sampleInterval):
			case <-sampling.Done():
				s.done <- s.look(ctx, databases)
				return
			}
		}
	}()
	return s, nil
}

func (s *sampler) look(ctx context.Context, databases []string) error {
	var size int64
	err := s.conn.QueryRow(ctx, sizeOf, databases).Scan(&size)
	s.peak = max(s.peak, size)
	return err
}

// end returns the largest size, and how many bytes of WAL the server has written.
func (s *sampler) end(ctx context.Context) (peak, wal int64, err error) {
	s.stop()
	err = <-s.done
	if err == nil {
		err = s.conn.QueryRow(ctx, `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1::text::pg_lsn)::bigint`, s.wal).Scan(&wal)
	}
	return s.peak, wal, errors.Join(err, s.conn.Close(context.WithoutCancel(ctx)))
}
