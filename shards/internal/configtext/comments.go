package configtext

import "fmt"

// comments returns the comment before each field of a new file with a map.
func comments(schemaPrefix string, maxShards int) map[string]string {
	return map[string]string{
		"cluster":       "The cluster's name. It keeps two clusters from sharing a database by mistake.",
		"shards":        fmt.Sprintf("How many shards exist now. More can be opened later, up to %d in this layout.", maxShards),
		"schema_prefix": "What the names of the shards' schemas begin with: shard 42 is " + schemaPrefix + "00042.",
		"epoch":         "The time from which IDs count. It must not change once shards exist.",
		"layout": "How the 64 bits of an ID are split, from the high bits down: time, shard, type, sequence. It must not\n" +
			"change once shards exist. type, such as a number for each table, may be left out. time: 0 makes IDs\n" +
			"without a time, as Pinterest's: {time: 0, shard: 16, type: 10, sequence: 36}.",
		"strategy": strategyComment,
		"store":    storeComment,
		"hosts": "The Postgres databases: the DSN of the primary, those of its replicas, and the host's share of the\n" +
			"shards beside other hosts. In a DSN ${NAME} stands for a variable of the environment. In the user and\n" +
			"password of a URL its value is percent-encoded, so the variable holds the password as it is. A DSN\n" +
			"without a password uses that of ~/.pgpass or of passfile=FILE. A file that a DSN names, as in\n" +
			"?sslmode=verify-full&sslrootcert=ca.pem, is beside this one. For a first try with a server on this machine:\n" +
			"postgres://postgres@127.0.0.1/app. Other machines must have TLS, unless the DSN has another sslmode.\n" +
			"Where dsn leads to a pooler such as PgBouncer, direct is the DSN of the same server for commands.",
		"placement":        `Which shards are on which host, each shard once: 7, 0-1023 or "0-9,77", the last in quotes.`,
		"migrations":       migrationsComment,
		"search_path":      "Schemas that the search_path has after the shard's own, such as [extensions].",
		"shared":           "Schemas that the shards of a host share. Migrations marked \"once a host\" may change them.",
		"extensions":       "Extensions of Postgres that kiloshard create makes on each host, in schema public or another one.",
		"generators":       "Other ways to make IDs, beside next_id().",
		"old_ids_below":    "IDs below it are from the tables of an adopted database, and name no shard. It may never change.",
		"types":            "The types of objects, each with its number in their IDs. No number may ever change.",
		"password_command": passwordCommandComment,
	}
}

// remoteComments are those of a new file without a map.
var remoteComments = map[string]string{
	"cluster":          "The cluster's name. A store may hold the maps of several.",
	"store":            remoteStoreComment,
	"migrations":       migrationsComment,
	"password_command": passwordCommandComment,
}

const (
	migrationsComment      = "The directory of the migrations. A relative one is beside this file."
	passwordCommandComment = "A program that prints the password for a connection that is about to be made."
)

const strategyComment = `How a key picks its shard. {by: modulo}: the remainder of a number divided by the number of shards.
{by: hash, hash: xxhash}: that of a hash of any text; or md5, or hex, digits: 8, the first digits of the md5.
{by: range, ranges: [{from: 0, shard: 0}, {from: 1000000, shard: 1}]}: each range ends where the next begins;
with next: 1000000, of numbers, the last one and each after it hold so many keys, each in the next shard.
{by: directory, otherwise: {by: modulo}, allocate: {by: weighted}}: a table in the shards says where each key is.
{by: id, allocate: {by: weighted}}: a key is an ID that a shard made, and names that shard.
of: 2048 keeps the divisor when more shards are opened. refuse_ids: true refuses keys as large as IDs, so that an
ID used as a key by mistake is an error instead of a row that is not found; keys are then smaller numbers, or texts.

Where the number of a new user comes from: with id, a service asks for any open shard, and the ID of the row that it
inserts there is the user's number and key. With a directory the key may come from the user, such as
an address, and a shard is chosen for it. With the others the number comes before the shard: from a generator (see
generators below) or another system. A shard is chosen by weighted (the hosts' weights), least_used or capacity. A host
with closed: true gets no new users, and capacity: 1000000 is the most that a host gets.`

const storeComment = `Where the map of the shards is kept: shards, hosts, placement and every other field here but store and migrations.
{kind: file}: in this file. {kind: postgres, dsn: "postgres://kiloshard:${MAP_PASSWORD}@10.0.0.9/kiloshard?sslmode=verify-full"}: in a control
database. {kind: etcd, endpoints: ["https://10.0.0.9:2379"]}: in etcd; with user and password: "${ETCD_PASSWORD}",
with ca, cert and key, PEM files beside this one, and with prefix: /kiloshard/photos/, if it needs them.
With postgres and etcd this file has only cluster, store and migrations: kiloshard map import copies the map to the
store, kiloshard map edit changes it, and running services follow at once.`

const remoteStoreComment = `Where the map of the shards is kept. This file does not hold it: no hosts, no placement. kiloshard map import
copies it to the store, kiloshard map edit changes it, kiloshard map history shows who changed it, when and why.
{kind: postgres, dsn: "postgres://kiloshard:${MAP_PASSWORD}@10.0.0.9/kiloshard?sslmode=verify-full"}: in a table of a control database.
{kind: etcd, endpoints: ["https://10.0.0.8:2379", "https://10.0.0.9:2379"]}: in etcd; with user: kiloshard and
password: "${ETCD_PASSWORD}", with ca: ca.pem, cert: client.pem and key: client.key, PEM files beside this one, and with
prefix: /kiloshard/photos/, which all keys begin with, if it needs them.
DSNs from the store are trusted less than this file: they may use variables such as PG_A_PASSWORD, only as the
password, and name no files. variables: ["PG_*"] allows them others, anywhere; hosts: ["10.0.0.*"] limits the hosts
that they may name; local: {sslmode: verify-full, sslrootcert: ca.pem} overrides their settings.`
