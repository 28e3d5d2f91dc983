// Package creation is kiloshard-lab bench create: provision.Create beside a loop inside each server.
package creation

import (
	"context"
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/sql"
)

// rounds is the number of rounds. Each way has one turn in a round.
const rounds = 3

// Config configures [Run].
type Config struct {
	// NewHosts returns new empty hosts: the same number each time, on the same servers.
	NewHosts func(ctx context.Context) ([]shards.Host, error)
	Shards   int // over all hosts. Defaults to 4096
}

// Report is the result of [Run]: seconds, the median of the rounds.
type Report struct {
	Shards  int     `json:"shard_count"`
	Hosts   int     `json:"host_count"`
	Loop    float64 `json:"server_side_loop_seconds"`
	Ours    float64 `json:"create_seconds"`
	Again   float64 `json:"second_create_seconds"` // with nothing to do
	VsLoop  float64 `json:"ratio_to_loop"`         // of time: above 1 is slower than the loop
	Verify  float64 `json:"verify_seconds"`
	Rounds  int     `json:"rounds"`
	Shard   int     `json:"objects_per_shard"`
	PerHost int     `json:"sessions_per_host"`
}

// Run compares provision.Create with a PL/pgSQL loop inside each server that creates the same objects, on all servers at
// once: the cost without a client.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Shards <= 0 {
		cfg.Shards = 4096
	}
	report := &Report{Shards: cfg.Shards, Rounds: rounds, Shard: 5, PerHost: 2}
	var loop, ours, again, verify []float64
	err := harness.Turns(rounds, 2, func(_, side int) error {
		hosts, err := cfg.NewHosts(ctx)
		if err != nil {
			return err
		}
		m, err := server.Config(cfg.Shards, hosts).Map()
		if err != nil {
			return err
		}
		report.Hosts = len(hosts)
		if side == 0 {
			return timed(&loop, func() error { return createByLoop(ctx, m) })
		}
		create := func() error {
			_, err := provision.Create(ctx, provision.CreateConfig{Map: m, PerHost: report.PerHost})
			return err
		}
		if err := timed(&ours, create); err != nil {
			return err
		}
		if err := timed(&again, create); err != nil {
			return err
		}
		return timed(&verify, func() error { return verified(ctx, m) })
	})
	if err != nil {
		return nil, err
	}
	report.Loop, report.Ours, report.Again, report.Verify = stats.Median(loop), stats.Median(ours), stats.Median(again), stats.Median(verify)
	report.VsLoop = stats.MedianRatio(ours, loop)
	return report, nil
}

// timed appends how many seconds fn takes.
func timed(all *[]float64, fn func() error) error {
	seconds, err := harness.Time(fn)
	*all = append(*all, seconds)
	return err
}

// createByLoop creates the shards of every host in a loop inside the server.
func createByLoop(ctx context.Context, m *shards.Map) error {
	engine, _ := sql.Engine(sqlParams())
	// The script of one shard as a format string: its number is %1$s, its schema %2$I.
	const number, schema = 987654, "schema_of_the_shard"
	script := strings.ReplaceAll(sql.Shard(sqlParams(), number, schema), "%", "%%")
	script = strings.ReplaceAll(strings.ReplaceAll(script, fmt.Sprint(number), "%1$s"), schema, "%2$I")
	return harness.Together(len(m.Hosts()), func(i int) error {
		host := m.Hosts()[i]
		numbers := m.NumbersOn(host.Name)
		// As in Create: 64 shards per transaction, and function bodies are not checked.
		return server.Exec(ctx, host, engine, fmt.Sprintf(`
			DO $loop$ BEGIN
				SET client_min_messages = warning; SET check_function_bodies = off;
				FOR n IN %d..%d LOOP
					EXECUTE format(%s, n, 'shard_' || lpad(n::text, 5, '0'));
					IF n %% 64 = 63 THEN COMMIT; END IF;
				END LOOP;
			END $loop$`, numbers[0], numbers[len(numbers)-1], "$format$"+script+"$format$"))
	})
}

// verified returns an error when the shards are not as the map says.
func verified(ctx context.Context, m *shards.Map) error {
	differences, err := provision.Verify(ctx, m)
	if err == nil && len(differences) > 0 {
		err = fmt.Errorf("%d differences after creating the shards, the first: %s", len(differences), differences[0])
	}
	return err
}

func sqlParams() sql.Params {
	return sql.Params{
		Cluster: "bench", SchemaPrefix: "shard_", Epoch: server.Epoch, End: server.Layout.End(server.Epoch),
		TimeBits: server.Layout.TimeBits(), ShardBits: server.Layout.Shard, SequenceBits: server.Layout.Sequence,
	}
}
