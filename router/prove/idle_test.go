package prove_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// TestIdleSessions has a server end sessions for being idle. What comes next on them has not run, and is known not to have.
func TestIdleSessions(t *testing.T) {
	t.Parallel()
	direct := start(t).DSN(database)
	const sessions = `select count(*) = 0 from pg_stat_activity where application_name = 'idle'`
	ended := func() bool { return ask[bool](t, direct, sessions) }
	r := open(t, router.Config{}, direct+"&application_name=idle&idle_session_timeout=500")
	for n := range int64(5) {
		if err := write(t.Context(), shard(t, r, 1), n+1); err != nil {
			t.Error(err)
		}
		eventually(t, "the session has ended", ended)
	}
	s := shard(t, open(t, router.Config{}, direct+"&application_name=idle&idle_in_transaction_session_timeout=100"), 1)
	for name, call := range map[string]func(pgx.Tx) error{
		"COMMIT":    func(tx pgx.Tx) error { return tx.Commit(t.Context()) },
		"statement": func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), insert, 101, ""); return err },
	} {
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), insert, 100, ""); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the session has ended", ended)
		err = call(tx)
		if sqlState(err) != "25P03" || errors.Is(err, router.ErrOutcomeUnknown) || errors.Is(err, router.ErrLost) || !router.SafeToRetry(err) {
			t.Errorf("%s: %v", name, err)
		}
		_ = tx.Rollback(t.Context())
	}
	if n := ask[int](t, direct, `select count(*) from shard_00001.ledger where id >= 100`); n != 0 {
		t.Errorf("%d rows of transactions that were not committed", n)
	}
}
