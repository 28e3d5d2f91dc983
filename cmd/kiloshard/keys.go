package main

import (
	"strconv"

	"github.com/kiloshard/kiloshard/shards"
)

// parseKey returns the key that a text is: any where the strategy takes any, else a number.
func parseKey(m *shards.Map, text, name string) (shards.Key, error) {
	if by := m.Strategy().By; by == shards.Modulo || by == shards.ByID {
		number, err := parseInt(text, "a key", name)
		return shards.NumberKey(number), err
	}
	return shards.TextKey(text), nil
}

func parseInt(text, what, name string) (int64, error) {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, usagef("%s %q: expected %s, a whole number of 64 bits", name, text, what)
	}
	return value, nil
}

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
