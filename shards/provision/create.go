package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/sql"
)

// CreateConfig says what [Create] works on and how.
type CreateConfig struct {
	Map      *shards.Map
	PerHost  int             // sessions at work on each host. Defaults to 2
	Batch    int             // shards in a transaction. Defaults to 64
	Progress fanout.Progress // Defaults to none
}

// CreateReport says what [Create] did.
type CreateReport struct {
	Created shards.Set
	Existed shards.Set // shards that were there already
	// Generators are those made in the helper schemas, with their hosts, such as "photo on tick-a".
	Generators []string
}

// Create makes every shard of the map exist on its host. It changes nothing where a host does not
// answer ([shards.HostError]), where a shard already lives on another host than the map says
// ([MisplacedError]), where a generator's sequence makes other numbers than the map says ([ProgressionError]), or where a host holds shards of another cluster, epoch or layout (a
// [shards.HostError] around a [pgconn.PgError] with SQLSTATE [sql.Refused]).
//
// When ctx ends, the batches under way are finished. If not all shards are there then, the error
// is a [shards.PartialError]; another Create goes on where this one stopped.
func Create(ctx context.Context, cfg CreateConfig) (CreateReport, error) {
	if cfg.Batch <= 0 {
		cfg.Batch = 64
	}
	inventories, err := takeAll(ctx, cfg.Map, false)
	if err != nil {
		return CreateReport{}, err
	}
	if err := misplaced(cfg.Map, inventories); err != nil {
		return CreateReport{}, err
	}
	if err := clash(cfg.Map, inventories); err != nil {
		return CreateReport{}, err
	}
	if err := install(ctx, cfg.Map, inventories); err != nil {
		return CreateReport{}, err
	}
	generators, err := installGenerators(ctx, cfg.Map, inventories)
	if err != nil {
		return CreateReport{}, err
	}

	var existed, missing []shards.Number
	for n := range cfg.Map.All().All() {
		if inventories[cfg.Map.HostIndex(n)].hasShard(cfg.Map, n) {
			existed = append(existed, n)
		} else {
			missing = append(missing, n)
		}
	}
	p := params(cfg.Map)
	created, err := fanout.Run(ctx, fanout.Config[*pgx.Conn]{
		Map:   cfg.Map,
		Open:  open,
		Close: func(ctx context.Context, conn *pgx.Conn) { _ = conn.Close(ctx) },
		Alive: func(conn *pgx.Conn) bool { return !conn.IsClosed() },
		Do: func(ctx context.Context, conn *pgx.Conn, batch []shards.Number) []error {
			var script strings.Builder
			for _, n := range batch {
				script.WriteString(sql.Shard(p, int(n), cfg.Map.Schema(n)))
				for _, w := range generatorsOf(cfg.Map, n) {
					script.WriteString(w.script())
				}
				if cfg.Map.HasDirectory() {
					script.WriteString(sql.Directory(int(n), cfg.Map.Schema(n)))
				}
			}
			err := execScript(ctx, conn, script.String())
			return slices.Repeat([]error{err}, len(batch))
		},
		PerHost:  cfg.PerHost,
		Batch:    cfg.Batch,
		Progress: cfg.Progress,
	}, fanout.Plan(cfg.Map, shards.SetOf(missing...)))
	return CreateReport{Created: created, Existed: shards.SetOf(existed...), Generators: generators}, err
}

// hasShard tells whether all that makes a shard is there.
func (inv *inventory) hasShard(m *shards.Map, n shards.Number) bool {
	if !inv.complete[m.Schema(n)] {
		return false
	}
	for _, w := range generatorsOf(m, n) {
		if !inv.has(w) {
			return false
		}
	}
	return inv.hasDirectory(m, n)
}

// install puts the helper schema on every host that lacks it or has another version of it.
func install(ctx context.Context, m *shards.Map, inventories []*inventory) error {
	script, version := sql.Engine(params(m))
	var hosts []shards.Host
	for _, inv := range inventories {
		if inv.settings == nil || inv.settings.Engine != version {
			hosts = append(hosts, inv.host)
		}
	}
	return onHosts(ctx, hosts, func(ctx context.Context, _ int, conn *pgx.Conn) error {
		return execScript(ctx, conn, script)
	})
}

// MisplacedError says that shards live on other hosts than the map says. Creating them where the
// map says would hide the rows they have.
type MisplacedError struct {
	Map    *shards.Map
	Shards []shards.Number
	Hosts  []string // where each of them lives
}

// Error names the first of the shards, where it lives and where the map says.
func (e *MisplacedError) Error() string {
	text := fmt.Sprintf("shard %d (%s) lives on %s, the map puts it on %s", e.Shards[0], e.Map.Schema(e.Shards[0]), e.Hosts[0], e.Map.Host(e.Shards[0]).Name)
	if more := len(e.Shards) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + "; expected the map to say where shards are: correct its placement, or move the shards"
}

// misplaced returns a [MisplacedError] when a shard lacks at home but lives elsewhere.
func misplaced(m *shards.Map, inventories []*inventory) error {
	wrong := &MisplacedError{Map: m}
	for n := range m.All().All() {
		home := inventories[m.HostIndex(n)]
		if _, ok := home.complete[m.Schema(n)]; ok {
			continue
		}
		for _, inv := range inventories {
			if _, ok := inv.complete[m.Schema(n)]; ok {
				wrong.Shards = append(wrong.Shards, n)
				wrong.Hosts = append(wrong.Hosts, inv.host.Name)
				break
			}
		}
	}
	if len(wrong.Shards) == 0 {
		return nil
	}
	return wrong
}
