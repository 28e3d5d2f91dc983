package provision_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/sql"
)

// sessionsEnd is how long the sessions of an earlier Create may take to end on a busy server, after they were closed.
const sessionsEnd = 2 * time.Second

// A role without privileges cannot block Create, before the installation or after it.
func TestCreateIgnoresOtherRoles(t *testing.T) {
	t.Parallel()
	m := newMap(t, 8)
	host := m.Hosts()[0]
	nobody := pgtest.Nobody(t, host.ConnString())
	for second := range int32(3) {
		if _, err := nobody.Exec(t.Context(), "select pg_advisory_lock($1::int, $2)", int32(sql.LockClass), second); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		if _, err := provision.Create(ctx, provision.CreateConfig{Map: m, Wait: sessionsEnd}); err != nil {
			t.Fatal(err)
		}
	}
	checkComplete(t, m)
}

// Commands that create shards exclude each other by tables that only their role can lock, and the error names the
// holder.
func TestLocksOfTheOwner(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		lock string
		want string
		busy bool
	}{
		{"kiloshard.lock_install", "the lock for installing the helper schema is held by process %d, role ", false},
		{sql.CreateLock, "another create, upgrade or grant is at work: process %d, role ", true},
	} {
		t.Run(test.lock, func(t *testing.T) {
			t.Parallel()
			m := newMap(t, 8)
			create(t, m)
			host := m.Hosts()[0]
			other := session(t, host)
			for _, text := range []string{
				"drop schema " + m.Schema(m.NumbersOn(host.Name)[0]) + " cascade", "update kiloshard.settings set engine = 'another'",
				"begin", "lock table " + test.lock + " in share update exclusive mode",
			} {
				if _, err := other.Exec(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m, Wait: sessionsEnd})
			if want := fmt.Sprintf(test.want, other.PgConn().PID()); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, provision.ErrBusy) != test.busy {
				t.Errorf("got %v, expected %q", err, want)
			}
		})
	}
}
