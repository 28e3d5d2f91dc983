package shards

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

const storeComment = `Where the map of the shards is kept: shards, hosts, placement and every other field here but store and migrations.
{kind: file}: in this file. {kind: postgres, dsn: "postgres://kiloshard:${MAP_PASSWORD}@10.0.0.9/kiloshard?sslmode=verify-full"}: in a control
database. {kind: etcd, endpoints: ["https://10.0.0.9:2379"]}: in etcd; with user and password: "${ETCD_PASSWORD}",
with ca, cert and key, PEM files beside this one, and with prefix: /kiloshard/photos/, if it needs them.
With postgres and etcd this file has only cluster, store and migrations: kiloshard map import copies the map to the
store, kiloshard map edit changes it, and running services follow at once.`

const bootstrapComment = `Where the map of the shards is kept. This file does not hold it: no hosts, no placement. kiloshard map import
copies it to the store, kiloshard map edit changes it, kiloshard map history shows who changed it, when and why.
{kind: postgres, dsn: "postgres://kiloshard:${MAP_PASSWORD}@10.0.0.9/kiloshard?sslmode=verify-full"}: in a table of a control database.
{kind: etcd, endpoints: ["https://10.0.0.8:2379", "https://10.0.0.9:2379"]}: in etcd; with user: kiloshard and
password: "${ETCD_PASSWORD}", with ca: ca.pem, cert: client.pem and key: client.key, PEM files beside this one, and with
prefix: /kiloshard/photos/, which all keys begin with, if it needs them.
DSNs from the store are trusted less than this file: they may use variables such as PG_A_PASSWORD, only as the
password, and name no files. variables: ["PG_*"] allows them others, anywhere; hosts: ["10.0.0.*"] limits the hosts
that they may name; local: {sslmode: verify-full, sslrootcert: ca.pem} overrides their settings.`

const (
	exampleStoreDSN  = "postgres://kiloshard:${MAP_PASSWORD}@10.0.0.9/kiloshard?sslmode=verify-full"
	exampleEndpoints = "https://10.0.0.9:2379"
)

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
	return append(write(c.bootstrapParts(), true), "\n"+comment(passwordCommandExample)...)
}

// bootstrapParts are the fields of a config without a map.
func (c Config) bootstrapParts() []part {
	parts := []part{
		{"The cluster's name. A store may hold the maps of several.", "cluster: " + plain(c.Cluster)},
		{bootstrapComment, storeField(c.Store)},
	}
	if c.Migrations != "" {
		parts = append(parts, part{"The directory of the migrations. A relative one is beside this file.", "migrations: " + plain(c.Migrations)})
	}
	return append(parts, c.passwordCommandParts()...)
}

func storeField(s Store) string {
	text := "store: {kind: " + plain(s.Kind)
	if s.DSN != "" {
		text += ", dsn: " + strconv.Quote(s.DSN)
	}
	if len(s.Endpoints) > 0 {
		text += ", endpoints: " + flow(s.Endpoints, strconv.Quote)
	}
	if s.Password != "" {
		text += ", user: " + plain(s.User) + ", password: " + strconv.Quote(s.Password)
	}
	for _, f := range []struct{ name, value string }{{"prefix", s.Prefix}, {"ca", s.CA}, {"cert", s.Cert}, {"key", s.Key}} {
		if f.value != "" {
			text += ", " + f.name + ": " + plain(f.value)
		}
	}
	if len(s.Variables) > 0 {
		text += ", variables: " + flow(s.Variables, strconv.Quote)
	}
	if len(s.Hosts) > 0 {
		text += ", hosts: " + flow(s.Hosts, strconv.Quote)
	}
	if len(s.Local) > 0 {
		var all []string
		for _, key := range slices.Sorted(maps.Keys(s.Local)) {
			all = append(all, key+": "+strconv.Quote(s.Local[key]))
		}
		text += ", local: {" + strings.Join(all, ", ") + "}"
	}
	return text + "}"
}
