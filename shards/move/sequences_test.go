package move_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// TestSequencesGoOn ends the session that opens the target, once the source is fenced: what that session has done is undone, and the sequences of the shard
// still go on where they were.
func TestSequencesGoOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	b.exec(0, `set search_path = shard_00001; create sequence falling increment -2; create sequence round maxvalue 3 cycle; create sequence unused;
		select nextval('falling'), nextval('falling'), nextval('round')`)
	log, ended := b.cfg.Events, false
	b.cfg.Events = func(e progress.Event) {
		log(e)
		if e.Step == ledger.Fenced && e.Kind == progress.Begun {
			ended = true
			if err := b.try(1, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'kiloshard move' and state = 'idle in transaction'`); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	if !ended {
		t.Error("the step fenced has not begun")
	}
	b.equal("sequences", b.text(1, `set search_path = shard_00001; select concat_ws(' ', nextval('falling'), nextval('round'), nextval('unused'))`), "-5 2 1")
	b.served("pg-b", "the end")
	b.clean()
}
