package query

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// routed is where a key, an ID or a UUID belongs, and for a key how it got there.
type routed struct {
	cli.Place
	Key        string `json:"key,omitempty"`
	Strategy   string `json:"strategy,omitempty"`
	How        string `json:"how,omitempty"`
	Arithmetic string `json:"arithmetic,omitempty"`
	Entry      string `json:"entry,omitempty"`
	Note       string `json:"note,omitempty"`
	path       string
}

// RouteCommand is kiloshard route.
func RouteCommand(a *cli.App) *cobra.Command {
	var as argument
	cmd := &cobra.Command{
		Use:   "route KEY | route --key KEY | route --id ID [--generator NAME] | route --uuid UUID",
		Short: "Prints shard, schema and host for a key, an ID or a UUID",
		Long: `Prints shard, schema and host for a key, and how the map's strategy finds them: by arithmetic, or by a lookup in
the directory. --id takes an ID that next_id() made, or the generator that --generator names; --uuid takes a
UUID, by its hash.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := len(args)
			for _, name := range []string{"key", "id", "uuid"} {
				if cmd.Flags().Changed(name) {
					given++
				}
			}
			if given != 1 || as.generator != "" && !cmd.Flags().Changed("id") {
				return cli.Usagef("expected KEY or --key KEY, --id ID, --id ID --generator NAME, or --uuid UUID")
			}
			if len(args) > 0 {
				as.key = args[0]
			}
			_, m, err := a.LoadMapOffline(cmd.Context())
			if err == nil && m.HasDirectory() && as.id == "" && as.uuid == "" { // a host knows the key
				_, m, err = a.LoadMap(cmd.Context())
			}
			if err != nil {
				return err
			}
			r, err := as.route(cmd.Context(), m)
			if err != nil {
				return err
			}
			return a.Print(r, func() {
				a.Table([][]string{
					{"SHARD", "SCHEMA", "HOST", "ADDRESS"},
					{strconv.Itoa(int(r.Shard)), r.Schema, r.Host, r.Address},
				})
				if r.path != "" {
					a.Say("%s", r.path)
				}
				if r.Note != "" {
					a.Warn("note: %s", r.Note)
				}
			})
		},
	}
	cli.TakesNegative(cmd) // a key
	cmd.Flags().StringVar(&as.key, "key", "", "a key")
	cmd.Flags().StringVar(&as.id, "id", "", "an ID")
	cmd.Flags().StringVar(&as.generator, "generator", "", "the generator of the map that made the ID")
	cmd.Flags().StringVar(&as.uuid, "uuid", "", "a UUID")
	return cmd
}

// argument is the argument of kiloshard route: one of key, id and uuid.
type argument struct {
	key, id, uuid string
	generator     string // that made the ID
}

// route returns where the argument belongs.
func (as argument) route(ctx context.Context, m *shards.Map) (routed, error) {
	if text := as.uuid; text != "" {
		var uuid pgtype.UUID
		if err := uuid.Scan(text); err != nil {
			return routed{}, cli.Usagef("UUID %q: expected one such as 019a9f3e-5f00-7abc-8def-0123456789ab", text)
		}
		return routed{Place: cli.PlaceOf(m, m.ForUUID(uuid.Bytes))}, nil
	}
	if as.id == "" {
		return routeKey(ctx, m, as.key)
	}
	id, err := cli.ParseInt(as.id, "an ID", "ID")
	if err != nil {
		return routed{}, err
	}
	var n shards.Number
	if as.generator != "" {
		n, err = m.ForIDOf(as.generator, shards.ID(id))
	} else {
		n, err = m.ForID(shards.ID(id))
	}
	if err != nil {
		return routed{}, err
	}
	return routed{Place: cli.PlaceOf(m, n)}, nil
}

func routeKey(ctx context.Context, m *shards.Map, text string) (routed, error) {
	key, err := cli.ParseKey(m, text, "KEY")
	if err != nil {
		return routed{}, err
	}
	p, err := explain(ctx, m, key)
	if err != nil {
		return routed{}, err
	}
	return routed{cli.PlaceOf(m, p.Shard), p.Key, p.Strategy, p.How, p.Arithmetic, p.Entry, p.Note, p.String()}, nil
}

// explain finds the shard of a key: by the map alone, or by a router that looks it up in the directory.
func explain(ctx context.Context, m *shards.Map, key shards.Key) (router.Path, error) {
	if !m.HasDirectory() {
		n, err := m.For(key)
		if err != nil {
			return router.Path{}, err
		}
		return router.Path{
			Key: key.String(), Strategy: m.Strategy().By, How: router.ByArithmetic, Arithmetic: m.Explain(key),
			Shard: n, Schema: m.Schema(n), Host: m.Host(n).Name, Note: m.NoteID(key, time.Now()),
		}, nil
	}
	r, err := router.New(ctx, router.Config{Map: m})
	if err != nil {
		return router.Path{}, err
	}
	defer r.Close()
	return r.Explain(ctx, key)
}
