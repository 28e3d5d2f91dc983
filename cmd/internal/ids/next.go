package ids

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
)

// nextIDs are the arguments of kiloshard id next.
type nextIDs struct {
	key       *string // or
	shard     *shards.Number
	generator string
	count     int
}

func nextCommand(a *cli.App) *cobra.Command {
	var key, generator string
	var shard int32
	var n int
	cmd := &cobra.Command{
		Use:   "next --key K | --shard S | --generator NAME",
		Short: "Makes IDs on the shard of a key, or by one of the map's generators",
		Long: `Makes IDs with next_id() on a shard, or on the shard of a key. --generator uses that generator of the map;
interleaved numbers need a shard or a key too.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			byKey, byShard := cmd.Flags().Changed("key"), cmd.Flags().Changed("shard")
			if byKey && byShard || !byKey && !byShard && generator == "" {
				return cli.Usagef("expected either --key or --shard, or --generator")
			}
			if n < 1 {
				return cli.Usagef("--count %d: expected 1 or more", n)
			}
			want := nextIDs{generator: generator, count: n}
			if byShard {
				number := shards.Number(shard)
				want.shard = &number
			}
			if byKey {
				want.key = &key
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			return printNext(cmd.Context(), a, m, want)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the key whose shard makes the ID")
	cmd.Flags().Int32Var(&shard, "shard", 0, "the shard that makes the ID")
	cmd.Flags().StringVar(&generator, "generator", "", "the name of a generator of the map")
	cmd.Flags().IntVar(&n, "count", 1, "how many to make, in rising order")
	return cmd
}

func printNext(ctx context.Context, a *cli.App, m *shards.Map, want nextIDs) error {
	g, known := m.Generator(want.generator)
	switch {
	case want.generator == "":
	case !known:
		return cli.Usage(fmt.Errorf("--generator %q: %w in the map", want.generator, shards.ErrNoGenerator))
	case !g.InShards():
		return nextCentral(ctx, a, m, want)
	case g.Kind == shards.Interleaved && want.key == nil && want.shard == nil:
		return cli.Usagef("--generator %s: interleaved numbers are a shard's; expected --key or --shard", want.generator)
	}
	r, err := router.New(ctx, router.Config{Map: m})
	if err != nil {
		return err
	}
	defer r.Close()
	var number shards.Number // UUIDs may be made on any shard
	if want.shard != nil {
		number = *want.shard
	}
	if want.key != nil {
		key, err := cli.ParseKey(m, *want.key, "--key")
		if err != nil {
			return err
		}
		shard, err := r.ForKey(ctx, key)
		if err != nil {
			return err
		}
		number = shard.Number()
	}
	shard, err := r.ForShard(number)
	if err != nil {
		return err
	}
	switch {
	case want.generator == "":
		made, err := shard.NextIDs(ctx, want.count)
		if err != nil {
			return err
		}
		result := make([]explained, len(made))
		for i, id := range made {
			result[i] = scheme{layout: m.Layout(), epoch: m.Epoch(), m: m}.explain(uint64(id))
		}
		return printIDs(a, result)
	case g.Kind == shards.Interleaved:
		made, err := ids.OnShard[shards.ID](shard, want.generator).NextIDs(ctx, want.count)
		if err != nil {
			return err
		}
		return printGenerated(a, m, made, numberText, func(id shards.ID) (shards.Number, error) { return m.ForIDOf(want.generator, id) })
	}
	made, err := ids.OnShard[ids.UUID](shard, want.generator).NextIDs(ctx, want.count)
	if err != nil {
		return err
	}
	return printGenerated(a, m, made, uuidText, func(id ids.UUID) (shards.Number, error) { return m.ForUUID(id), nil })
}

func nextCentral(ctx context.Context, a *cli.App, m *shards.Map, want nextIDs) error {
	if want.key != nil || want.shard != nil {
		return cli.Usagef("--generator %s: made by no shard; expected neither --key nor --shard", want.generator)
	}
	g, err := ids.Open(ctx, ids.Config{Map: m, Name: want.generator})
	if err != nil {
		return err
	}
	defer g.Close()
	made, err := g.NextIDs(ctx, want.count)
	if err != nil {
		return err
	}
	return printGenerated(a, m, made, numberText, func(id shards.ID) (shards.Number, error) { return m.ForIDOf(want.generator, id) })
}

// generated is an ID of a generator, as kiloshard id next prints it, and the shard where its row belongs.
type generated struct {
	ID string `json:"id"`
	cli.Place
}

func printGenerated[T any](a *cli.App, m *shards.Map, made []T, text func(T) string, home func(T) (shards.Number, error)) error {
	result := make([]generated, len(made))
	rows := [][]string{{">ID", ">SHARD", "SCHEMA", "HOST"}}
	for i, id := range made {
		n, err := home(id)
		if err != nil {
			return err
		}
		result[i] = generated{text(id), cli.PlaceOf(m, n)}
		rows = append(rows, []string{result[i].ID, fmt.Sprint(n), result[i].Schema, result[i].Host})
	}
	return a.Print(result, func() {
		if a.Output == cli.Plain {
			for _, r := range result {
				fmt.Fprintln(a.Stdout, r.ID)
			}
			return
		}
		a.Table(rows)
	})
}

func numberText(id shards.ID) string { return fmt.Sprint(int64(id)) }

func uuidText(id ids.UUID) string { return pgtype.UUID{Bytes: id, Valid: true}.String() }
