package configtext

// examples shows, as a comment, each optional field that a new file leaves out.
var examples = map[string]string{
	"shared":     `shared: [app]  # schemas that the shards of a host share; migrations marked "once a host" may change them`,
	"extensions": `extensions: [citext, {name: hstore, schema: ext}]  # made on each host, in schema public or another one`,
	"password_command": `A program that prints the password for a connection that kiloshard is about to make, such as a token that is valid
for minutes. KILOSHARD_HOST has the host's name, or store for the control database; PGHOST, PGPORT,
PGUSER and PGDATABASE say where the connection goes. It runs without a shell, in the directory of this file.
password_command: [sh, -c, 'aws rds generate-db-auth-token --hostname "$PGHOST" --port "$PGPORT" --username "$PGUSER"']`,
	"generators": `Other ways to make IDs, beside next_id(). Each name has functions next_<name>_id() and next_<name>_ids(n), in
every shard's schema or, if it names hosts, in their schema kiloshard. The order of the hosts of tickets,
the number of classes (of) and the first number (from: 1000, by default 1) must never change.
generators:
  - {kind: tickets, names: [photo, account], hosts: [pg-a, pg-b], of: 2}  # odd and even numbers, from two servers
  - {kind: interleaved, names: [order], of: 8192}                        # shard k makes k, k + of, k + 2 of …
  - {kind: sequence, names: [message], hosts: [pg-a]}                    # one sequence for all shards
  - {kind: row, names: [invoice], hosts: [pg-a]}                         # without gaps, one transaction at a time
  - {kind: uuidv4, names: [session]}
  - {kind: uuidv7, names: [event]}`,
	"types": `The types of objects of package router/objects, each with its number in their IDs. No number may ever change.
types:
  - {name: pin, number: 1}
  - {name: board, number: 2}`,
}
