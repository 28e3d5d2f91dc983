package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// explained is an ID taken apart, as kiloshard id prints it as JSON. IDs are texts there, since
// many programs read the numbers of JSON as doubles, which do not hold 64 bits.
type explained struct {
	ID       string        `json:"id"`
	Time     time.Time     `json:"time"`
	Shard    shards.Number `json:"shard"`
	Sequence int           `json:"sequence"`
	Schema   string        `json:"schema"` // empty when the map has no such shard
	Host     string        `json:"host"`
}

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

func explain(m *shards.Map, id shards.ID) explained {
	parts := m.Layout().Parts(id)
	e := explained{ID: strconv.FormatInt(int64(id), 10), Time: m.Time(id), Shard: parts.Shard, Sequence: parts.Sequence}
	if n, err := m.ForID(id); err == nil {
		e.Schema, e.Host = m.Schema(n), m.Host(n).Name
	}
	return e
}

func (a *app) printIDs(m *shards.Map, ids []shards.ID) error {
	result := make([]explained, len(ids))
	rows := [][]string{{">ID", "TIME", ">SHARD", ">SEQUENCE", "SCHEMA", "HOST"}}
	for i, id := range ids {
		e := explain(m, id)
		result[i] = e
		schema, host := e.Schema, e.Host
		if schema == "" {
			schema, host = "-", "no such shard"
		}
		rows = append(rows, []string{e.ID, e.Time.Format(timeFormat), strconv.Itoa(int(e.Shard)), strconv.Itoa(e.Sequence), schema, host})
	}
	return a.print(result, func() { a.table(rows) })
}

func (a *app) idCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "id", Short: "Makes IDs and takes them apart", Args: cobra.NoArgs}
	cmd.AddCommand(a.idNextCommand(), a.idDecodeCommand(), a.idEncodeCommand())
	return cmd
}

func (a *app) idNextCommand() *cobra.Command {
	var key string
	var shard, n int
	cmd := &cobra.Command{
		Use:   "next --key K",
		Short: "Makes IDs on the shard of a key",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("key") == cmd.Flags().Changed("shard") {
				return usagef("expected either --key or --shard")
			}
			if n < 1 {
				return usagef("--count %d: expected 1 or more", n)
			}
			_, m, err := a.loadMap()
			if err != nil {
				return err
			}
			r, err := router.New(cmd.Context(), router.Config{Map: m})
			if err != nil {
				return err
			}
			defer r.Close()
			number := shards.Number(shard)
			if cmd.Flags().Changed("key") {
				value, err := parseInt(key, "a key", "--key")
				if err != nil {
					return err
				}
				number = m.ForKey(value)
			}
			handle, err := r.ForShard(number)
			if err != nil {
				return err
			}
			ids, err := handle.NextIDs(cmd.Context(), n)
			if err != nil {
				return err
			}
			return a.printIDs(m, ids)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the key whose shard makes the ID")
	cmd.Flags().IntVar(&shard, "shard", 0, "the shard that makes the ID")
	cmd.Flags().IntVar(&n, "count", 1, "how many to make, in rising order")
	return cmd
}

func (a *app) idDecodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "decode ID...",
		Short: "Tells when and where an ID was made",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			ids := make([]shards.ID, len(args))
			for i, arg := range args {
				value, err := parseInt(arg, "an ID", "ID")
				if err != nil {
					return err
				}
				ids[i] = shards.ID(value)
			}
			_, m, err := a.loadMap()
			if err != nil {
				return err
			}
			return a.printIDs(m, ids)
		},
	}
}

func (a *app) idEncodeCommand() *cobra.Command {
	var at string
	var shard, sequence int
	cmd := &cobra.Command{
		Use:   "encode --time T --shard S --sequence N",
		Short: "Puts an ID together from its parts",
		Args:  cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			_, m, err := a.loadMap()
			if err != nil {
				return err
			}
			t, err := time.Parse(time.RFC3339Nano, at)
			if err != nil {
				return usagef("--time %q: expected a moment such as 2026-03-01T12:00:00.123Z", at)
			}
			ms, err := m.Layout().Milliseconds(t, m.Epoch())
			if err != nil {
				return usageError{fmt.Errorf("--time: %w", err)}
			}
			id, err := m.Layout().Compose(shards.Parts{Milliseconds: ms, Shard: shards.Number(shard), Sequence: sequence})
			if err != nil {
				return err
			}
			return a.printIDs(m, []shards.ID{id})
		},
	}
	cmd.Flags().StringVar(&at, "time", "", "when, such as 2026-03-01T12:00:00.123Z")
	cmd.Flags().IntVar(&shard, "shard", 0, "the number of the shard")
	cmd.Flags().IntVar(&sequence, "sequence", 0, "the slot within the millisecond")
	_ = cmd.MarkFlagRequired("time") // fails only for a flag that is not there
	_ = cmd.MarkFlagRequired("shard")
	return cmd
}
