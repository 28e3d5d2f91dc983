package provision

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// inventory is what a host holds of a cluster.
type inventory struct {
	host     shards.Host
	database string    // tells two databases apart, also when two DSNs lead to one
	settings *settings // nil where the helper schema is not installed

	// The functions that a shard of the map has: their names, and how many parameters each takes.
	names []string
	args  []int

	// The schemas that look like shards, and whether all that makes a shard is in them, right or wrong.
	complete map[string]bool

	generators map[string]foundGenerators // by schema
	uuidv7     bool                       // whether the helper schema has the function

	directories map[string]map[string]string // by schema and table: its columns

	// Only for Verify: the same in detail, and the helper schema; and what the columns of tables in
	// them call by default.
	schemas  map[string]schema
	defaults []columnDefault
}

// settings are the row of kiloshard.settings.
type settings struct {
	Cluster      string
	SchemaPrefix string
	Epoch        time.Time
	TimeBits     int
	ShardBits    int
	TypeBits     int
	SequenceBits int
	Engine       string
}

// schema is what is there of one schema that looks like a shard's.
type schema struct {
	sequence  *sequence // nil when it is lacking
	functions map[functionKey]function
}

// sequence is what pg_sequence says of a sequence.
type sequence struct {
	Type      string
	Increment int64
	Cache     int64
	Max       int64
	Cycle     bool
}

type functionKey struct {
	Name string
	Args int
}

type function struct {
	Language string
	Body     string
}

// take looks at what a host holds: all schemas whose name is the map's prefix and digits.
func take(ctx context.Context, conn *pgx.Conn, m *shards.Map, host shards.Host, detailed bool) (*inventory, error) {
	pattern := "^" + m.Config().SchemaPrefix + "[0-9]+$"
	inv := &inventory{host: host, complete: map[string]bool{}, schemas: map[string]schema{}}
	for _, f := range sql.Functions(sql.Shard(params(m), 0, m.Schema(0))) {
		inv.names, inv.args = append(inv.names, f.Name), append(inv.args, f.Args)
	}
	looks := []func(context.Context, *pgx.Conn, string) error{inv.takeDatabase, inv.takeSettings, inv.takeComplete}
	if detailed {
		looks = append(looks, inv.takeSchemas, inv.takeFunctions, inv.takeDefaults)
	}
	if m.HasDirectory() {
		looks = append(looks, inv.takeDirectory)
	}
	for _, look := range looks {
		if err := look(ctx, conn, pattern); err != nil {
			return nil, err
		}
	}
	return inv, inv.takeGenerators(ctx, conn, pattern, m.Generators())
}

func (inv *inventory) takeDatabase(ctx context.Context, conn *pgx.Conn, _ string) error {
	const query = `
		SELECT s.system_identifier::text || '/' || d.oid::text
		FROM pg_database d, pg_control_system() s WHERE d.datname = current_database()`
	return conn.QueryRow(ctx, query).Scan(&inv.database)
}

func (inv *inventory) takeSettings(ctx context.Context, conn *pgx.Conn, _ string) error {
	var installed bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('kiloshard.settings') IS NOT NULL`).Scan(&installed); err != nil || !installed {
		return err
	}
	// Settings of a version that knew no types have no type_bits.
	const query = `
		SELECT cluster, schema_prefix, epoch, time_bits, shard_bits, coalesce((to_jsonb(s) ->> 'type_bits')::int, 0),
			sequence_bits, engine
		FROM kiloshard.settings s`
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[settings])
	if err != nil {
		return err
	}
	if len(found) > 0 {
		inv.settings = &found[0]
	}
	return nil
}

func (inv *inventory) takeComplete(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		SELECT n.nspname, c.oid IS NOT NULL AND coalesce(f.count, 0) = cardinality($2::name[])
		FROM pg_namespace n
		LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'next_id_seq' AND c.relkind = 'S'
		LEFT JOIN (
			SELECT p.pronamespace, count(DISTINCT (p.proname, p.pronargs)) FROM pg_proc p
			JOIN unnest($2::name[], $3::int[]) f (name, args) ON f.name = p.proname AND f.args = p.pronargs
			GROUP BY p.pronamespace
		) f ON f.pronamespace = n.oid
		WHERE n.nspname ~ $1`
	rows, err := conn.Query(ctx, query, pattern, inv.names, inv.args)
	if err != nil {
		return err
	}
	var (
		name     string
		complete bool
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &complete}, func() error {
		inv.complete[name] = complete
		return nil
	})
	return err
}

func (inv *inventory) takeSchemas(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		SELECT n.nspname, s.seqrelid IS NOT NULL, coalesce(format_type(s.seqtypid, NULL), ''),
			coalesce(s.seqincrement, 0), coalesce(s.seqcache, 0), coalesce(s.seqmax, 0), coalesce(s.seqcycle, false)
		FROM pg_namespace n
		LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'next_id_seq'
		LEFT JOIN pg_sequence s ON s.seqrelid = c.oid
		WHERE n.nspname ~ $1`
	rows, err := conn.Query(ctx, query, pattern)
	if err != nil {
		return err
	}
	var (
		name  string
		has   bool
		found sequence
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &has, &found.Type, &found.Increment, &found.Cache, &found.Max, &found.Cycle}, func() error {
		s := schema{functions: map[functionKey]function{}}
		if has {
			copied := found
			s.sequence = &copied
		}
		inv.schemas[name] = s
		return nil
	})
	return err
}

func (inv *inventory) takeFunctions(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		SELECT n.nspname, p.proname, p.pronargs, l.lanname, p.prosrc
		FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
		WHERE (n.nspname ~ $1 OR n.nspname = 'kiloshard') AND (p.proname IN ('id_of', 'catch_up') OR p.proname ~ '^next_ids?$')`
	rows, err := conn.Query(ctx, query, pattern)
	if err != nil {
		return err
	}
	var (
		name  string
		key   functionKey
		found function
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &key.Name, &key.Args, &found.Language, &found.Body}, func() error {
		if _, known := inv.schemas[name]; !known { // the helper schema
			inv.schemas[name] = schema{functions: map[functionKey]function{}}
		}
		inv.schemas[name].functions[key] = found
		return nil
	})
	return err
}
