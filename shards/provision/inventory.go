package provision

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// inventory is what a host has of a cluster.
type inventory struct {
	host     shards.Host
	foreign  []found   // objects of other roles where only ours should be
	settings *settings // nil if the helper schema is not installed, or belongs to another role

	// The functions of a shard: their names and numbers of parameters.
	names []string
	args  []int

	detail []string // names of all functions that Verify compares

	found    map[string]foundSchema // schemas with names of shards
	versions map[string]string      // of installed objects, by schema and object, such as "shard_00042.next_id"

	generators map[string]foundGenerators // by schema
	uuidv7     bool                       // whether the helper schema has the function
	ledger     bool                       // whether it has the ledger of migrations
	fenced     map[string]string          // schemas of shards whose move has stopped at the fence, with its time and target; empty while a mover runs

	extensions map[string]extension // by name: those of the map, and those in shards

	rights []right // of roles other than the owners

	keyTables map[string]map[string]string // by schema and table: its columns

	// Only for Verify: details of these schemas and the helper schema, and the functions that column defaults in them
	// call.
	schemas  map[string]schema
	defaults []columnDefault
	narrow   []narrowColumn
	leads    []Lead
}

// foundSchema describes a schema with the name of a shard.
type foundSchema struct {
	ours  bool   // it has an object of a shard
	whole bool   // it has all objects of a shard, right or wrong
	owner string // role
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
	Keys         string // see [shards.Identity]; empty before an upgrade from a version that did not record it
}

// schema holds the details of a schema with the name of a shard.
type schema struct {
	sequence  *sequence // nil when it is missing
	rights    string    // what is wrong with the sequence's owner and grants; empty if they are right
	functions map[functionKey]function
}

// sequence is the content of pg_sequence and pg_class for a sequence.
type sequence struct {
	Type        string
	Start       int64
	Increment   int64
	Min         int64
	Max         int64
	Cache       int64
	Cycle       bool
	Persistence string // permanent, unlogged or temporary
}

// sequenceColumns are the columns of pg_sequence s and pg_class c that [sequence] is scanned from. Without a sequence they
// describe another kind of relation, or none.
const sequenceColumns = `coalesce(format_type(s.seqtypid, NULL), ''), coalesce(s.seqstart, 0), coalesce(s.seqincrement, 0),
	coalesce(s.seqmin, 0), coalesce(s.seqmax, 0), coalesce(s.seqcache, 0), coalesce(s.seqcycle, false),
	CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END`

// otherSetters names the roles, other than the owner of schema sn, that can set sequence c there and so repeat IDs. It is two arguments of concat_ws.
const otherSetters = `CASE WHEN c.relowner <> sn.nspowner THEN 'it belongs to role ' || c.relowner::regrole END,
				(SELECT string_agg('role ' || coalesce(r.rolname, 'PUBLIC') || ' may set it', ', ' ORDER BY r.rolname)
				FROM aclexplode(c.relacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
				WHERE a.privilege_type = 'UPDATE' AND a.grantee <> c.relowner)`

// fields returns the scan targets of sequenceColumns.
func (s *sequence) fields() []any {
	return []any{&s.Type, &s.Start, &s.Increment, &s.Min, &s.Max, &s.Cache, &s.Cycle, &s.Persistence}
}

func (s sequence) String() string {
	return fmt.Sprintf("type %s, start %d, increment %d, minimum %d, maximum %d, cache %d, cycle %t, %s",
		s.Type, s.Start, s.Increment, s.Min, s.Max, s.Cache, s.Cycle, s.Persistence)
}

type functionKey struct {
	Name string
	Args int
}

type function struct {
	Definition string // as sql.Definition writes it
	Body       string
	Public     bool   // whether PUBLIC may call it
	Owner      string // if it is not the schema's owner
}

// schemaPattern matches the names of shards' schemas.
func schemaPattern(m *shards.Map) string { return "^" + m.Config().SchemaPrefix + "[0-9]+$" }

// take reads what a host has of shards whose schemas' names match a pattern: for all of them, [schemaPattern].
func take(ctx context.Context, conn *pgx.Conn, m *shards.Map, host shards.Host, pattern string, detailed bool) (*inventory, error) {
	inv := &inventory{host: host, found: map[string]foundSchema{}, versions: map[string]string{}, schemas: map[string]schema{}}
	for _, f := range sql.Functions(sql.Shard(params(m), 0, m.Schema(0))) {
		inv.names, inv.args = append(inv.names, f.Name), append(inv.args, f.Args)
		inv.detail = append(inv.detail, f.Name)
	}
	engine, _ := sql.Engine(params(m))
	for _, f := range sql.Functions(engine) {
		inv.detail = append(inv.detail, f.Name)
	}
	if err := inv.takeForeign(ctx, conn, m, pattern); err != nil {
		return nil, err
	}
	looks := []func(context.Context, *pgx.Conn, string) error{inv.takeFound, inv.takeVersions, inv.takeRights}
	if inv.usable() {
		looks = append(looks, inv.takeSettings)
	}
	if detailed {
		looks = append(looks, inv.takeSchemas, inv.takeFunctions, inv.takeDefaults, inv.takeColumns, func(ctx context.Context, conn *pgx.Conn, _ string) (err error) {
			inv.leads, err = leads(ctx, conn, m, host)
			return err
		})
	}
	if m.Allocates() {
		looks = append(looks, inv.takeKeyTables)
	}
	for _, look := range []func(context.Context, *pgx.Conn, *shards.Map, string) error{inv.takeMoves, inv.takeExtensions} {
		looks = append(looks, func(ctx context.Context, conn *pgx.Conn, pattern string) error { return look(ctx, conn, m, pattern) })
	}
	for _, look := range looks {
		if err := look(ctx, conn, pattern); err != nil {
			return nil, err
		}
	}
	return inv, inv.takeGenerators(ctx, conn, pattern, m.Generators())
}

func (inv *inventory) takeSettings(ctx context.Context, conn *pgx.Conn, _ string) error {
	var installed bool
	const there = `SELECT to_regclass('kiloshard.settings') IS NOT NULL, to_regclass('kiloshard.ledger') IS NOT NULL`
	if err := conn.QueryRow(ctx, there).Scan(&installed, &inv.ledger); err != nil || !installed {
		return err
	}
	// Settings of a version without types have no type_bits.
	const query = `
		SELECT cluster, schema_prefix, epoch, time_bits, shard_bits, coalesce((to_jsonb(s) ->> 'type_bits')::int, 0),
			sequence_bits, engine, coalesce(to_jsonb(s) ->> 'keys', '')
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

func (inv *inventory) takeFound(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		SELECT n.nspname, c.oid IS NOT NULL OR coalesce(f.count, 0) > 0, c.oid IS NOT NULL AND coalesce(f.count, 0) = cardinality($2::name[]),
			pg_get_userbyid(n.nspowner)
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
		name  string
		found foundSchema
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &found.ours, &found.whole, &found.owner}, func() error {
		inv.found[name] = found
		return nil
	})
	return err
}

// takeVersions reads the versions of installed objects from their comments.
func (inv *inventory) takeVersions(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		SELECT n.nspname || '.' || o.name, d.description
		FROM pg_description d
		JOIN (
			SELECT 'pg_proc'::regclass, oid, pronamespace, proname FROM pg_proc
			UNION ALL SELECT 'pg_class'::regclass, oid, relnamespace, relname FROM pg_class
		) o (class, oid, namespace, name) ON o.class = d.classoid AND o.oid = d.objoid
		JOIN pg_namespace n ON n.oid = o.namespace
		WHERE d.objsubid = 0 AND d.description LIKE $2 || '%' AND (n.nspname ~ $1 OR n.nspname = $3)`
	rows, err := conn.Query(ctx, query, pattern, sql.VersionMark, helper)
	if err != nil {
		return err
	}
	var object, comment string
	_, err = pgx.ForEachRow(rows, []any{&object, &comment}, func() error {
		inv.versions[object] = sql.Version(comment)
		return nil
	})
	return err
}

func (inv *inventory) takeSchemas(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `
		SELECT sn.nspname, s.seqrelid IS NOT NULL, concat_ws(', ',
				` + otherSetters + `,
				CASE WHEN EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i'))
					THEN 'it belongs to a column' END),
			` + sequenceColumns + `
		FROM pg_namespace sn
		LEFT JOIN pg_class c ON c.relnamespace = sn.oid AND c.relname = 'next_id_seq'
		LEFT JOIN pg_sequence s ON s.seqrelid = c.oid
		WHERE sn.nspname ~ $1`
	rows, err := conn.Query(ctx, query, pattern)
	if err != nil {
		return err
	}
	var (
		name  string
		has   bool
		found sequence
		wrong string
	)
	_, err = pgx.ForEachRow(rows, append([]any{&name, &has, &wrong}, found.fields()...), func() error {
		s := schema{functions: map[functionKey]function{}, rights: wrong}
		if has {
			copied := found
			s.sequence = &copied
		}
		inv.schemas[name] = s
		return nil
	})
	return err
}

// functionsQuery finds functions named in $3 in schemas that match $1 and in schema $2.
const functionsQuery = `
	SELECT n.nspname, p.proname, p.pronargs, ` + sql.Definition + `, p.prosrc,
		EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee = 0 AND a.privilege_type = 'EXECUTE'),
		CASE WHEN p.proowner <> n.nspowner THEN p.proowner::regrole::text ELSE '' END
	FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
	WHERE (n.nspname ~ $1 OR n.nspname = $2) AND p.proname = ANY ($3)`

// fields returns the scan targets of functionsQuery, without the schema.
func (f *function) fields(key *functionKey) []any {
	return []any{&key.Name, &key.Args, &f.Definition, &f.Body, &f.Public, &f.Owner}
}

func (inv *inventory) takeFunctions(ctx context.Context, conn *pgx.Conn, pattern string) error {
	rows, err := conn.Query(ctx, functionsQuery, pattern, helper, inv.detail)
	if err != nil {
		return err
	}
	var (
		name  string
		key   functionKey
		found function
	)
	_, err = pgx.ForEachRow(rows, append([]any{&name}, found.fields(&key)...), func() error {
		if _, known := inv.schemas[name]; !known { // the helper schema
			inv.schemas[name] = schema{functions: map[functionKey]function{}}
		}
		inv.schemas[name].functions[key] = found
		return nil
	})
	return err
}
