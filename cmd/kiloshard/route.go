package main

import (
	"strconv"

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
	var byID bool
	cmd := &cobra.Command{
		Use:   "route KEY | route --id ID",
		Short: "Prints shard, schema and host for a key or an ID",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			value, err := parseInt(args[0], "a key", "KEY")
			if err != nil {
				return err
			}
			_, m, err := a.loadMap()
			if err != nil {
				return err
			}
			n := m.ForKey(value)
			if byID {
				if n, err = m.ForID(shards.ID(value)); err != nil {
					return err
				}
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
	cmd.Flags().BoolVar(&byID, "id", false, "the argument is an ID, not a key")
	return cmd
}

func parseInt(text, what, name string) (int64, error) {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, usagef("%s %q: expected %s, a whole number of 64 bits", name, text, what)
	}
	return value, nil
}
