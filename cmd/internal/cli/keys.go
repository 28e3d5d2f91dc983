package cli

import (
	"strconv"

	"github.com/kiloshard/kiloshard/shards"
)

// ParseKey returns the key that a text is: any where the strategy takes any, else a number.
func ParseKey(m *shards.Map, text, name string) (shards.Key, error) {
	if by := m.Strategy().By; by == shards.Modulo || by == shards.ByID {
		number, err := ParseInt(text, "a key", name)
		return shards.NumberKey(number), err
	}
	return shards.TextKey(text), nil
}

// ParseInt reads a whole number of 64 bits; its error names the argument, and says what was expected, such as "a key".
func ParseInt(text, what, name string) (int64, error) {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, Usagef("%s %q: expected %s, a whole number of 64 bits", name, text, what)
	}
	return value, nil
}

// Place is where a shard is, as kiloshard route prints it as JSON.
type Place struct {
	Shard   shards.Number `json:"shard"`
	Schema  string        `json:"schema"`
	Host    string        `json:"host"`
	Address string        `json:"address"`
}

// PlaceOf returns where the map has a shard.
func PlaceOf(m *shards.Map, n shards.Number) Place {
	host := m.Host(n)
	return Place{Shard: n, Schema: m.Schema(n), Host: host.Name, Address: host.Address()}
}
