package shards

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// YAML returns the config, its defaults filled in, as kiloshard.yaml. [Parse] reads it back as an
// equal config. DSNs are as written, with their ${NAME} variables. A map that is kept in a
// store other than a file is written as the store keeps it, without Store. The error is the
// [FieldError] of a config that [Config.Map] refuses.
func (c Config) YAML() ([]byte, error) {
	if c.Remote() {
		c.Store = c.Store.withDefaults()
		if err := c.checkBootstrap(); err != nil {
			return nil, err
		}
		return write(c.bootstrapParts(), false), nil
	}
	m, err := c.Map()
	if err != nil {
		return nil, err
	}
	return m.config.write(false), nil
}

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
	return c.withDefaults().write(true)
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

// generatorsExample is a comment in a new file without generators.
const generatorsExample = `Other ways to make IDs, beside next_id(). Each name has functions next_<name>_id() and next_<name>_ids(n), in
every shard's schema or, if it names hosts, in their schema kiloshard. The order of the hosts of tickets,
the number of classes (of) and the first number (from: 1000, by default 1) must never change.
generators:
  - {kind: tickets, names: [photo, account], hosts: [pg-a, pg-b], of: 2}  # odd and even numbers, from two servers
  - {kind: interleaved, names: [order], of: 8192}                        # shard k makes k, k + of, k + 2 of …
  - {kind: sequence, names: [message], hosts: [pg-a]}                    # one sequence for all shards
  - {kind: row, names: [invoice], hosts: [pg-a]}                         # without gaps, one transaction at a time
  - {kind: uuidv4, names: [session]}
  - {kind: uuidv7, names: [event]}`

// passwordCommandExample is a comment in a new file without a password command.
const passwordCommandExample = `A program that prints the password for a connection that kiloshard is about to make, such as a token that is valid
for minutes. KILOSHARD_HOST has the host's name, or store for the control database; PGHOST, PGPORT,
PGUSER and PGDATABASE say where the connection goes. It runs without a shell, in the directory of this file.
password_command: [sh, -c, 'aws rds generate-db-auth-token --hostname "$PGHOST" --port "$PGPORT" --username "$PGUSER"']`

// sharedExample and extensionsExample are comments in a new file without these.
const (
	sharedExample     = `shared: [app]  # schemas that the shards of a host share; migrations marked "once a host" may change them`
	extensionsExample = `extensions: [citext, {name: hstore, schema: ext}]  # made on each host, in schema public or another one`
)

// part is a top-level field of the file, with the comment before it.
type part struct{ comment, text string }

// write writes a config whose defaults are filled in.
func (c Config) write(commented bool) []byte {
	text := write(c.parts(), commented)
	if commented && len(c.SharedSchemas) == 0 {
		text = append(text, "\n"+comment(sharedExample)...)
	}
	if commented && len(c.Extensions) == 0 {
		text = append(text, "\n"+comment(extensionsExample)...)
	}
	if commented && len(c.PasswordCommand) == 0 {
		text = append(text, "\n"+comment(passwordCommandExample)...)
	}
	if commented && len(c.Generators) == 0 {
		text = append(text, "\n"+comment(generatorsExample)...)
	}
	return text
}

func write(parts []part, commented bool) []byte {
	var b bytes.Buffer
	if commented {
		b.WriteString(comment("The config of a Kiloshard cluster. All commands read it, and change it only where they say so."))
	}
	for _, p := range parts {
		if commented {
			b.WriteString("\n" + comment(p.comment))
		}
		b.WriteString(p.text + "\n")
	}
	return b.Bytes()
}

func (c Config) parts() []part {
	parts := []part{
		{
			"The cluster's name. It keeps two clusters from sharing a database by mistake.",
			"cluster: " + plain(c.Cluster) + version(c.Version),
		}, {
			fmt.Sprintf("How many shards exist now. More can be opened later, up to %d in this layout.", c.Layout.MaxShards()),
			fmt.Sprintf("shards: %d", c.Shards),
		}, {
			"What the names of the shards' schemas begin with: shard 42 is " + c.SchemaPrefix + "00042.",
			"schema_prefix: " + plain(c.SchemaPrefix),
		},
	}
	if !c.Epoch.IsZero() {
		parts = append(parts, part{"The time from which IDs count. It must not change once shards exist.", "epoch: " + c.Epoch.Format(time.RFC3339Nano)})
	}
	parts = append(parts, []part{
		{
			"How the 64 bits of an ID are split, from the high bits down: time, shard, type, sequence. It must not\n" +
				"change once shards exist. type, such as a number for each table, may be left out. time: 0 makes IDs\n" +
				"without a time, as Pinterest's: {time: 0, shard: 16, type: 10, sequence: 36}.",
			"layout: " + layoutText(c.Layout),
		}, {
			strategyComment,
			strategyField(c.Strategy),
		},
	}...)
	if !c.Store.isRemote() {
		parts = append(parts, part{storeComment, storeField(c.Store)})
	}
	parts = append(parts, []part{
		{
			"The Postgres databases: the DSN of the primary, those of its replicas, and the host's share of the\n" +
				"shards beside other hosts. In a DSN ${NAME} stands for a variable of the environment. In the user and\n" +
				"password of a URL its value is percent-encoded, so the variable holds the password as it is. A DSN\n" +
				"without a password uses that of ~/.pgpass or of passfile=FILE. A file that a DSN names, as in\n" +
				"?sslmode=verify-full&sslrootcert=ca.pem, is beside this one. For a first try with a server on this machine\n" +
				"without TLS: postgres://postgres@127.0.0.1/app?sslmode=disable.",
			"hosts:" + lines(c.Hosts, writeHost),
		}, {
			`Which shards are on which host, each shard once: 7, 0-1023 or "0-9,77", the last in quotes.`,
			"placement:" + lines(c.Placement, func(p Placement) string {
				return fmt.Sprintf("{shards: %s, host: %s}", shardsText(p.Shards), plain(p.Host))
			}),
		},
	}...)
	if c.Migrations != "" {
		parts = append(parts, part{"The directory of the migrations. A relative one is beside this file.", "migrations: " + plain(c.Migrations)})
	}
	parts = append(parts, part{
		"Schemas that the search_path has after the shard's own, such as [extensions].",
		"search_path: " + flow(c.SearchPath, plain),
	})
	if len(c.SharedSchemas) > 0 {
		parts = append(parts, part{
			"Schemas that the shards of a host share. Migrations marked \"once a host\" may change them.",
			"shared: " + flow(c.SharedSchemas, plain),
		})
	}
	if len(c.Extensions) > 0 {
		parts = append(parts, part{
			"Extensions of Postgres that kiloshard create makes on each host, in schema public or another one.",
			"extensions:" + lines(c.Extensions, writeExtension),
		})
	}
	if len(c.Generators) > 0 {
		parts = append(parts, part{
			"Other ways to make IDs, beside next_id().",
			"generators:" + lines(c.Generators, writeGenerator),
		})
	}
	if len(c.Types) > 0 {
		parts = append(parts, part{
			"The types of objects, each with its number in their IDs. No number may ever change.",
			"types:" + lines(c.Types, writeType),
		})
	}
	return append(parts, c.passwordCommandParts()...)
}

func (c Config) passwordCommandParts() []part {
	if len(c.PasswordCommand) == 0 {
		return nil
	}
	return []part{{
		"A program that prints the password for a connection that is about to be made.",
		"password_command: " + flow(c.PasswordCommand, plain),
	}}
}

// version writes the version of a map that has one.
func version(v int) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("\nversion: %d", v)
}

func writeGenerator(g Generator) string {
	text := fmt.Sprintf("{kind: %s, names: %s", plain(string(g.Kind)), flow(g.Names, plain))
	if len(g.Hosts) > 0 {
		text += ", hosts: " + flow(g.Hosts, plain)
	}
	if g.Of != 0 {
		text += fmt.Sprintf(", of: %d", g.Of)
	}
	if g.From != 0 {
		text += fmt.Sprintf(", from: %d", g.From)
	}
	return text + "}"
}

func writeHost(h Host) string {
	text := fmt.Sprintf("{name: %s, dsn: %s, replicas: %s, weight: %d", plain(h.Name), strconv.Quote(h.DSN), flow(h.Replicas, strconv.Quote), h.Weight)
	if h.Closed {
		text += ", closed: true"
	}
	if h.Capacity != 0 {
		text += fmt.Sprintf(", capacity: %d", h.Capacity)
	}
	return text + "}"
}

// layoutText writes a layout, with its type only if there is one.
func layoutText(l Layout) string {
	typ := ""
	if l.Type != 0 {
		typ = fmt.Sprintf("type: %d, ", l.Type)
	}
	return fmt.Sprintf("{time: %d, shard: %d, %ssequence: %d}", l.Time, l.Shard, typ, l.Sequence)
}

// shardsText writes a set, in quotes if it has commas.
func shardsText(s Set) string {
	text := s.String()
	if strings.Contains(text, ",") {
		return strconv.Quote(text)
	}
	return text
}

// lines writes a list with a line for each item.
func lines[T any](items []T, write func(T) string) string {
	var b strings.Builder
	for _, item := range items {
		b.WriteString("\n  - " + write(item))
	}
	return b.String()
}

// flow writes a list on one line.
func flow(items []string, write func(string) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = write(item)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func comment(text string) string {
	return strings.ReplaceAll("# "+strings.ReplaceAll(text, "\n", "\n# ")+"\n", "# \n", "#\n")
}

// plainPattern matches text that YAML reads as text, even between brackets, except the words in
// notPlain.
var (
	plainPattern = regexp.MustCompile(`^(\.{0,2}/)?[A-Za-z_][A-Za-z0-9_./-]*$`)
	notPlain     = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
)

// plain writes text without quotes if YAML allows it.
func plain(text string) string {
	if plainPattern.MatchString(text) && !slices.Contains(notPlain, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}
