package snapshot

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/migrate/versions"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// closeLimit bounds the end of a session after the caller's context has ended.
const closeLimit = 5 * time.Second

// Snapshot is the structure of a migrated shard. It is immutable, and safe for concurrent use.
type Snapshot struct {
	m         *shards.Map
	donor     Donor
	version   int32
	structure drift.Structure // in the order of creation, with marks for the schema and the number
	beyond    []string        // what the donor has beyond its structure
}

// Donor is the shard whose structure a snapshot holds.
type Donor struct {
	Shard shards.Number `json:"shard"`
	Alike int           `json:"alike"` // number of compared shards with its structure, including itself
	Of    int           `json:"of"`    // number of compared shards
}

// Donor returns the shard whose structure it is.
func (s *Snapshot) Donor() Donor { return s.donor }

// Version returns the version of shards made from the snapshot.
func (s *Snapshot) Version() int32 { return s.version }

// UnknownError says that the donor's schema has objects that a snapshot cannot make.
type UnknownError struct {
	Donor  shards.Number
	Things []string // what they are, such as "/* operator shard_00001.===(integer,integer) */"
}

// mostNamed is how many objects an [UnknownError] names.
const mostNamed = 10

// Error names them, up to ten.
func (e *UnknownError) Error() string {
	things := e.Things[:min(len(e.Things), mostNamed)]
	text := fmt.Sprintf("shard %d has %s, which neither a move nor a snapshot can make", e.Donor, strings.Join(things, "; "))
	if more := len(e.Things) - len(things); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// ErrNumber says that the donor's structure contains the donor's number, and that no other donor shows whether that is
// each shard's own number or a constant.
var ErrNumber = errors.New("its number is part of its structure: expected a second donor, or one with a higher number")

// errChanged says that the structure of shards changed meanwhile.
var errChanged = errors.New("its structure is no longer that of the other shards it was compared with")

// NoMajorityError says that no structure is shared by more than half of the shards that a snapshot could be taken of.
type NoMajorityError struct {
	Groups []drift.Group // the largest first
}

// Error names the two most frequent structures.
func (e *NoMajorityError) Error() string {
	first, second := e.Groups[0], e.Groups[1]
	return fmt.Sprintf("no structure is shared by more than half of the shards at the version: %d are like shard %d, %d like shard %d; see kiloshard migrate drift",
		first.Shards.Len(), first.Example, second.Shards.Len(), second.Example)
}

// Take compares the structures of some migrated shards, and reads the structure and version that more than half of them
// have from one of them. It locks the shard that it reads. It waits for a migration of that shard for [connect.LockWait],
// unless the DSN has a lock_timeout, and then returns an error that names the holder.
//
// The error is a [NoMajorityError], an [UnknownError], [ErrNumber], or the error of a shard or its host.
func Take(ctx context.Context, m *shards.Map, candidates ...shards.Number) (*Snapshot, error) {
	alike, donor, err := majority(ctx, m, candidates)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{m: m, donor: donor}
	var structure drift.Structure
	err = on(ctx, m, donor.Shard, func(conn *pgx.Conn) error {
		if err := lock(ctx, conn, sql.ShardTurn{Shard: int(donor.Shard), Schema: m.Schema(donor.Shard)}); err != nil {
			return err
		}
		found, err := drift.Read(ctx, conn, m, donor.Shard)
		if err != nil {
			return err
		}
		structure = found[donor.Shard]
		if s.beyond, err = beyond(ctx, conn, m, donor.Shard); err != nil {
			return err
		}
		if err := unknown(structure, m, donor.Shard); err != nil {
			return err
		}
		if structure, _, err = inOrder(ctx, conn, structure); err != nil {
			return err
		}
		schemas := []string{m.Schema(donor.Shard)}
		results, err := conn.PgConn().Exec(ctx, versions.Query(schemas)).ReadAll()
		if err != nil {
			return err
		}
		all, err := versions.Parse(string(results[len(results)-1].Rows[0][0]), schemas)
		if err != nil {
			return err
		}
		s.version = all[0].Number
		return all[0].Err
	})
	if err != nil {
		return nil, err
	}
	s.structure, err = withNumber(ctx, m, structure, donor.Shard, alike)
	return s, err
}

// majority returns the shards that are alike and more than half of the candidates, and one of them.
func majority(ctx context.Context, m *shards.Map, candidates []shards.Number) (shards.Set, Donor, error) {
	report, err := drift.Look(ctx, drift.Config{Map: m, Shards: shards.SetOf(candidates...)})
	if err != nil {
		return shards.Set{}, Donor{}, err
	}
	slices.SortStableFunc(report.Groups, func(a, b drift.Group) int { return b.Shards.Len() - a.Shards.Len() })
	of := report.NotCreated.Len()
	for _, g := range report.Groups {
		of += g.Shards.Len()
	}
	switch {
	case len(report.Groups) == 0:
		return shards.Set{}, Donor{}, errors.New("no shard to take a snapshot of is created")
	case len(report.Groups) > 1 && 2*report.Groups[0].Shards.Len() <= of:
		return shards.Set{}, Donor{}, &NoMajorityError{Groups: report.Groups}
	}
	first := report.Groups[0]
	return first.Shards, Donor{Shard: first.Example, Alike: first.Shards.Len(), Of: of}, nil
}

// errBusy says that a shard's lock was not free in time.
var errBusy = errors.New("somebody else is at work in the shard, and does not end")

// lockPoll is the time between two attempts to get a donor's lock.
const lockPoll = 20 * time.Millisecond

// lock begins a transaction and takes a shard's lock in it. It polls, each time in a new transaction, since a CREATE INDEX
// CONCURRENTLY of the lock's holder would wait for a transaction that has a snapshot.
func lock(ctx context.Context, conn *pgx.Conn, turn sql.ShardTurn) error {
	var wait int64 // milliseconds
	if err := conn.QueryRow(ctx, "select setting::bigint from pg_settings where name = 'lock_timeout'").Scan(&wait); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Duration(wait) * time.Millisecond); ; {
		results, err := conn.PgConn().Exec(ctx, "begin; "+turn.Try()).ReadAll()
		if err != nil {
			return err
		}
		if string(results[len(results)-1].Rows[0][0]) == "true" {
			return nil
		}
		if err := run(ctx, conn, "rollback"); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			var holders string
			if err := conn.QueryRow(ctx, turn.Holders()).Scan(&holders); err != nil {
				return err
			}
			return fmt.Errorf("%w: %s", errBusy, holders)
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// withNumber compares the donor's structure with that of another shard of the same group, and returns it with a mark in
// place of its number where each shard has its own.
func withNumber(ctx context.Context, m *shards.Map, structure drift.Structure, donor shards.Number, alike shards.Set) (drift.Structure, error) {
	numbered := structure.Numbered(donor)
	fail := func(err error) error {
		return &shards.ShardError{Shard: donor, Schema: m.Schema(donor), Host: m.Host(donor).Name, Err: err}
	}
	for other := range alike.All() {
		if other == donor {
			continue
		}
		var found drift.Structure
		err := on(ctx, m, other, func(conn *pgx.Conn) error {
			all, err := drift.Read(ctx, conn, m, other)
			found = all[other]
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case found.Equal(structure):
			return structure, nil
		case found.Equal(numbered.Of(other)):
			return numbered, nil
		}
		return nil, fail(errChanged)
	}
	if !withoutPositions(numbered).Equal(withoutPositions(structure)) {
		return nil, fail(ErrNumber)
	}
	return structure, nil
}

var positionPattern = regexp.MustCompile(` /\* column .* \*/$`)

// withoutPositions returns the structure without the comments on columns' positions, whose numbers are not shards'.
func withoutPositions(structure drift.Structure) drift.Structure {
	plain := slices.Clone(structure)
	for i := range plain {
		plain[i].Text = positionPattern.ReplaceAllString(plain[i].Text, "")
	}
	return plain
}

// outsidePattern matches the end of a CREATE TABLE of a table with a parent or a child in another schema.
var outsidePattern = regexp.MustCompile(` /\* its parent or child outside the schema: (?s:.*) \*/$`)

// ofShard reports whether a line is a CREATE TABLE of a table whose columns and parents are the shard's own: none of a type, or of another server.
func ofShard(l drift.Line) bool {
	name := strings.TrimPrefix(l.Key, "table ")
	text := strings.Replace(l.Text, "CREATE UNLOGGED ", "CREATE ", 1)
	options, ok := strings.CutPrefix(text, "CREATE TABLE "+name+" (")
	return ok && options != "" && !outsidePattern.MatchString(l.Text)
}

// unknown returns an [UnknownError] if a structure has objects that a snapshot cannot make.
func unknown(structure drift.Structure, m *shards.Map, donor shards.Number) error {
	var things []string
	for _, l := range structure {
		switch {
		case strings.HasPrefix(l.Text, "/*") && !strings.HasPrefix(l.Text, "/* inherited") && !strings.HasPrefix(l.Text, "/* of partitions"),
			strings.HasSuffix(l.Text, " is invalid */"), strings.HasPrefix(l.Key, "table ") && !ofShard(l):
			things = append(things, drift.Render(l.Text, m.Schema(donor), donor))
		}
	}
	if len(things) == 0 {
		return nil
	}
	slices.Sort(things)
	return &UnknownError{Donor: donor, Things: things}
}

// on runs fn with a session to the host of shard n, and wraps its errors with the host's name.
func on(ctx context.Context, m *shards.Map, n shards.Number, fn func(*pgx.Conn) error) error {
	host := m.Host(n)
	conn, err := drift.Connect(ctx, host)
	if err != nil {
		return &shards.HostError{Host: host.Name, Err: err}
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		_ = conn.Close(ctx) // there is nothing to commit
	}()
	if err := connect.NameHolders(ctx, conn.PgConn(), fn(conn)); err != nil {
		return &shards.ShardError{Shard: n, Schema: m.Schema(n), Host: host.Name, Err: err}
	}
	return nil
}
