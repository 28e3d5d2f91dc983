package prove_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// mutant is the engine without one of its safeguards, and what to do to it so that it gives an ID twice.
type mutant struct {
	name     string
	old, new string // in the script
	play     func(s *stage) (frozen bool)
}

var mutants = []mutant{
	{
		"the margin without its value for each process",
		" + current_setting('max_connections')::int + current_setting('max_worker_processes')::int + current_setting('max_wal_senders')::int", "",
		func(s *stage) bool {
			var near []*actor
			for range 40 {
				near = append(near, s.actor("nextval 1").calls("next_id()"))
			}
			s.goOn(stageWindow + time.Millisecond)
			setter := s.actor("setval 1").calls("next_id()")
			frozen := setter.standsStill()
			for _, a := range near {
				a.letGo("nextval 1")
			}
			return frozen
		},
	},
	{
		"no lock that setters exclude each other by",
		takeLock, "",
		func(s *stage) bool {
			s.goOn(stageFar)
			setter := s.actor("setval 1").calls("next_id()")
			frozen := setter.standsStill()
			s.goOn(time.Millisecond)
			s.actor().calls("next_id() from generate_series(1, 5)")
			return frozen
		},
	},
	{
		"no look at the last value under the lock",
		"WHEN coalesce(pg_sequence_last_value(seq), 0) = seen", "WHEN true",
		func(s *stage) bool {
			s.goOn(stageFar)
			setter := s.actor("lock 1").calls("next_id()")
			frozen := setter.standsStill()
			s.actor().calls("next_id() from generate_series(1, 5)")
			return frozen
		},
	},
	{
		"no second reading of the clock",
		"WHEN (floor(((date_part('epoch', clock_timestamp()) - 1767225600.000000::double precision) * 2000.0))::bigint >> 1) < (v >> 1) THEN NULL", "",
		func(s *stage) bool {
			s.goOn(stageFar)
			setter := s.actor("clocked 3", "setval 1").calls("next_id()") // it has looked, in next_id() and in draw()
			frozen := setter.standsStill()
			s.goOn(time.Millisecond - stageFar)
			setter.letGo("clocked 3")
			other := s.actor()
			for range 20 { // up to where the setter sets it, and beyond
				other.calls("next_id() from generate_series(1, 10)")
				s.goOn(5 * time.Millisecond)
			}
			return frozen
		},
	},
	{
		"a value drawn without the lock between window and margin",
		"ELSIF behind > 30 THEN", "ELSIF behind > 30 + 118 THEN", // as it is where a setter moves it
		func(s *stage) bool {
			near := s.actor("nextval 1").calls("next_id()")
			s.goOn(stageWindow + stageMargin + time.Millisecond) // just so far that there is a setter
			setter := s.actor("setval 1").calls("next_id()")
			frozen := setter.standsStill()
			near.letGo("nextval 1") // and now there would be none
			s.actor().calls("next_id() from generate_series(1, 155)")
			return frozen
		},
	},
	{
		"blocks of next_ids() without a look for each value",
		"SELECT kiloshard.next_id(shard, seq) FROM generate_series(1, block)", "SELECT ((v >> 1) << 14) | (v & 1) FROM (SELECT nextval(seq) AS v FROM generate_series(1, block)) AS drawn", // of shard 0

		func(s *stage) bool {
			s.goOn(5 * time.Millisecond) // so that there is room for a block
			bulk := s.actor("nextval 2").calls("next_ids(400)")
			s.goOn(stageFar)
			setter := s.actor("setval 1").calls("next_id()")
			frozen := setter.standsStill()
			bulk.letGo("nextval 2")
			return frozen
		},
	},
	{
		"a value drawn before the wait",
		"  LOOP\n    last := coalesce", "  v := nextval(seq);\n  LOOP\n    last := coalesce",
		func(s *stage) bool {
			s.goOn(stageFar)
			setter := s.actor("setval 1").calls("next_id()")
			frozen := setter.standsStill()
			other := s.actor().cancelable()
			for range 200 {
				other.calls("next_id()")
			}
			return frozen
		},
	},
}

// replaced returns the script of the mutant.
func (m mutant) replaced(t *testing.T, script string) string {
	t.Helper()
	if !strings.Contains(script, m.old) {
		t.Fatalf("the engine has no %q any more", m.old)
	}
	return strings.ReplaceAll(script, m.old, m.new)
}

// TestMutants has sessions stand still between two expressions of the engine, and of the engine without one of its
// safeguards. The whole one gives no ID twice; each of the others does.
func TestMutants(t *testing.T) {
	t.Parallel()
	server := start(t, kiloshard, localpg.Config{Settings: map[string]string{"max_connections": "100"}})
	// A block so long that one session stands for many.
	longBlocks := func(script string) string {
		return mutant{old: "least(n, 1)", new: "least(n, 500)"}.replaced(t, script)
	}
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			stageOf := func(name string, change func(string) string) *stage {
				dsn, err := server.CreateDatabase(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				return newStage(t, dsn, change)
			}
			name := string(rune('a' + i))
			s := stageOf("whole_"+name, longBlocks)
			m.play(s)
			if twice := s.end(100); len(twice) > 0 || len(s.given) < 100 {
				t.Errorf("the whole engine gave %d IDs, %d of them twice", len(s.given), len(twice))
			}
			s = stageOf("mutant_"+name, func(script string) string { return m.replaced(t, longBlocks(script)) })
			frozen := m.play(s)
			twice := s.end(100)
			if !frozen {
				t.Error("no session was frozen, so the test proves nothing")
			}
			if len(twice) == 0 {
				t.Errorf("of %d IDs none was given twice: the mutant is not caught", len(s.given))
			}
			t.Logf("%d of %d IDs were given twice", len(twice), len(s.given))
		})
	}
}
