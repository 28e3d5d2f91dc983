package shards

import (
	"github.com/kiloshard/kiloshard/shards/internal/configfile"
)

// Template returns a kiloshard.yaml with a comment for each field, for a new cluster. Fields that c
// leaves empty get example values: 2048 shards, and two hosts, pg-a and
// pg-b, with their passwords in the variables PG_A_PASSWORD and PG_B_PASSWORD. Without a placement
// the shards are spread evenly, in ranges. c must have an epoch, such as midnight UTC of the
// present day. Template does not check c: [Parse] does.
//
// For a [Config.Remote] config it returns the kiloshard.yaml that says how to find the map, with example values for
// fields that c leaves empty.
func Template(c Config) []byte {
	if c.Remote() {
		return c.bootstrapTemplate()
	}
	if c.Cluster == "" {
		c.Cluster = "photos"
	}
	if c.Shards == 0 {
		c.Shards = 2048
	}
	if len(c.Hosts) == 0 {
		c.Hosts = []Host{
			{Name: "pg-a", DSN: "postgres://app:${PG_A_PASSWORD}@10.0.0.1/app?sslmode=verify-full"},
			{Name: "pg-b", DSN: "postgres://app:${PG_B_PASSWORD}@10.0.0.2/app?sslmode=verify-full"},
		}
	}
	if c.Strategy.By == "" {
		c.Strategy = Strategy{By: Modulo, RefuseIDs: true}
	}
	if len(c.Placement) == 0 {
		c.Placement = Evenly(c.Shards, c.Hosts)
	}
	if c.Migrations == "" {
		c.Migrations = "./migrations"
	}
	c = c.withDefaults()
	var examples []string
	if len(c.SharedSchemas) == 0 {
		examples = append(examples, sharedExample)
	}
	if len(c.Extensions) == 0 {
		examples = append(examples, extensionsExample)
	}
	if len(c.PasswordCommand) == 0 {
		examples = append(examples, passwordCommandExample)
	}
	if len(c.Generators) == 0 {
		examples = append(examples, generatorsExample)
	}
	return commented(c.parts(), c.comments(), examples...)
}

// bootstrapTemplate writes the commented config of a map that is in a store.
func (c Config) bootstrapTemplate() []byte {
	if c.Cluster == "" {
		c.Cluster = "photos"
	}
	if c.Migrations == "" {
		c.Migrations = "./migrations"
	}
	switch c.Store = c.Store.withDefaults(); {
	case c.Store.Kind == StorePostgres && c.Store.DSN == "":
		c.Store.DSN = exampleStoreDSN
	case c.Store.Kind == StoreEtcd && len(c.Store.Endpoints) == 0:
		c.Store.Endpoints = []string{exampleEndpoints}
	}
	return commented(c.bootstrapParts(), bootstrapComments, passwordCommandExample)
}

// commented returns a new file: the fields with their comments, and examples as comments.
func commented(fields []configfile.Field, comments map[string]string, examples ...string) []byte {
	text := configfile.Comment("The config of a Kiloshard cluster. All commands read it, and change it only where they say so.")
	text += string(configfile.Write(fields, comments))
	for _, example := range examples {
		text += "\n" + configfile.Comment(example)
	}
	return []byte(text)
}

// Evenly places shards 0 to count-1 on the hosts in rising order: one range for each host, as equal
// as possible. If there are fewer shards than hosts, the last hosts have no placement.
func Evenly(count int, hosts []Host) []Placement {
	var placement []Placement
	for i, h := range hosts {
		first, next := count*i/len(hosts), count*(i+1)/len(hosts)
		if first < next {
			placement = append(placement, Placement{SetOfRanges(Range{Number(first), Number(next - 1)}), h.Name})
		}
	}
	return placement
}
