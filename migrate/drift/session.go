package drift

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// indexLimit is the number of shards up to which a session may use indexes of the catalogs. For more it must scan them: without statistics of
// thousands of new rows, Postgres expects few and would look up each by an index.
const indexLimit = 16

// closeLimit bounds the end of a session after the caller's context has ended.
const closeLimit = 5 * time.Second

// Connect opens a session in which all names but Postgres's own are written with their schema, for [Read].
func Connect(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	return connect.Open(ctx, host, func(cfg *pgx.ConnConfig) {
		connect.LimitLocks(cfg)
		for name, value := range map[string]string{
			"application_name":                "kiloshard drift",
			"work_mem":                        "32MB",
			"max_parallel_workers_per_gather": "0",
		} {
			cfg.RuntimeParams[name] = value
		}
	})
}

// session is a session that reads some shards of one host.
type session struct {
	conn              *pgx.Conn
	schemas           []string
	numbers           []int32
	byName            map[string]shards.Number
	tables, functions []string // Kiloshard's own
}

// newSession returns a session for the given shards.
func newSession(conn *pgx.Conn, m *shards.Map, numbers []shards.Number) *session {
	s := &session{conn: conn, byName: map[string]shards.Number{}}
	s.tables, s.functions = Toolkit(m)
	for _, n := range numbers {
		s.schemas, s.numbers = append(s.schemas, m.Schema(n)), append(s.numbers, int32(n))
		s.byName[m.Schema(n)] = n
	}
	return s
}

// with calls fn with a session for the given shards, and closes it.
func with(ctx context.Context, m *shards.Map, host shards.Host, numbers []shards.Number, fn func(*session) error) error {
	conn, err := Connect(ctx, host)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		_ = conn.Close(ctx) // there is nothing to commit
	}()
	if len(numbers) > indexLimit {
		if _, err := conn.Exec(ctx, "SET enable_nestloop = off"); err != nil {
			return err
		}
	}
	return connect.NameHolders(ctx, conn.PgConn(), fn(newSession(conn, m, numbers)))
}

// Read reads the structures of shards on conn's host, in the transaction that is open on conn, if any. conn must come from
// [Connect]. A shard that is not created has an empty structure.
func Read(ctx context.Context, conn *pgx.Conn, m *shards.Map, numbers ...shards.Number) (map[shards.Number]Structure, error) {
	return newSession(conn, m, numbers).structures(ctx)
}

// Toolkit returns the names of the relations and functions that Kiloshard makes in a shard.
func Toolkit(m *shards.Map) (relations, functions []string) {
	relations, functions = []string{"schema_version", "next_id_seq", sql.FenceMark, sql.ArrivingSequence}, []string{"next_id", "next_ids"}
	relations = slices.AppendSeq(relations, maps.Keys(sql.DirectoryTables))
	for _, g := range m.Generators() {
		if !g.InShards() {
			continue
		}
		for _, name := range g.Names {
			functions = append(functions, "next_"+name+"_id", "next_"+name+"_ids")
			relations = append(relations, "next_"+name+"_id_seq")
		}
	}
	return relations, functions
}

// fenced returns the shards whose schema is the fence of a move.
func (s *session) fenced(ctx context.Context) ([]shards.Number, error) {
	const query = `SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = $2 AND c.relkind = 'v' AND n.nspname = ANY ($1)
		AND NOT EXISTS (SELECT FROM pg_class s WHERE s.relnamespace = n.oid AND s.relname = 'next_id_seq')`
	rows, err := s.conn.Query(ctx, query, s.schemas, sql.FenceMark)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (shards.Number, error) {
		var schema string
		err := row.Scan(&schema)
		return s.byName[schema], err
	})
}
