package main

import (
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/shards"
)

// place is where a shard is, as kiloshard route prints it as JSON.
type place struct {
	Shard   shards.Number `json:"shard"`
	Schema  string        `json:"schema"`
	Host    string        `json:"host"`
	Address string        `json:"address"`
}

func placeOf(m *shards.Map, n shards.Number) place {
	host := m.Host(n)
	return place{Shard: n, Schema: m.Schema(n), Host: host.Name, Address: host.Address()}
}

func (a *app) routeCommand() *cobra.Command {
	var as argument
	cmd := &cobra.Command{
		Use:   "route KEY | route --id ID [--generator NAME] | route --uuid UUID",
		Short: "Prints shard, schema and host for a key, an ID or a UUID",
		Long: `Prints shard, schema and host for a key; with --id for an ID that next_id() made, or the
named generator; with --uuid for a UUID, by its hash.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if as.generator != "" && !as.id || as.id && as.uuid {
				return usagef("expected KEY, --id ID, --id ID --generator NAME, or --uuid UUID")
			}
			_, m, err := a.loadMap()
			if err != nil {
				return err
			}
			n, err := as.home(m, args[0])
			if err != nil {
				return err
			}
			p := placeOf(m, n)
			return a.print(p, func() {
				a.table([][]string{
					{"SHARD", "SCHEMA", "HOST", "ADDRESS"},
					{strconv.Itoa(int(p.Shard)), p.Schema, p.Host, p.Address},
				})
			})
		},
	}
	cmd.Flags().BoolVar(&as.id, "id", false, "the argument is an ID, not a key")
	cmd.Flags().StringVar(&as.generator, "generator", "", "the generator of the map that made the ID")
	cmd.Flags().BoolVar(&as.uuid, "uuid", false, "the argument is a UUID, not a key")
	return cmd
}

// argument says what the argument of kiloshard route is; a key if nothing else.
type argument struct {
	id, uuid  bool
	generator string
}

// home returns the shard that the argument belongs to.
func (as argument) home(m *shards.Map, text string) (shards.Number, error) {
	if as.uuid {
		var uuid pgtype.UUID
		if err := uuid.Scan(text); err != nil {
			return 0, usagef("UUID %q: expected one such as 019a9f3e-5f00-7abc-8def-0123456789ab", text)
		}
		return m.ForUUID(uuid.Bytes), nil
	}
	value, err := parseInt(text, "a key", "KEY")
	switch {
	case err != nil:
		return 0, err
	case as.generator != "":
		return m.ForIDOf(as.generator, shards.ID(value))
	case as.id:
		return m.ForID(shards.ID(value))
	}
	return m.ForKey(value), nil
}

func parseInt(text, what, name string) (int64, error) {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, usagef("%s %q: expected %s, a whole number of 64 bits", name, text, what)
	}
	return value, nil
}
