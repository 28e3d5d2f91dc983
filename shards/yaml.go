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

// YAML writes the config, its defaults filled in, as kiloshard.yaml. [Parse] reads it back as an
// equal config. DSNs stand in it as written, each ${NAME} not replaced. The error is the
// [FieldError] of a config that [Config.Map] refuses.
func (c Config) YAML() ([]byte, error) {
	m, err := c.Map()
	if err != nil {
		return nil, err
	}
	return m.config.write(false), nil
}

// Template returns a kiloshard.yaml with a comment for each field, for a new cluster. It holds what
// c has; what c leaves empty takes the values of an example: 2048 shards, and two hosts, pg-a and
// pg-b, with their passwords in the variables PG_A_PASSWORD and PG_B_PASSWORD. Without a placement
// the shards are spread evenly, in ranges. The epoch must be given, such as midnight UTC of the
// present day. Template does not check c: [Parse] does.
func Template(c Config) []byte {
	if c.Cluster == "" {
		c.Cluster = "photos"
	}
	if c.Shards == 0 {
		c.Shards = 2048
	}
	if len(c.Hosts) == 0 {
		c.Hosts = []Host{
			{Name: "pg-a", DSN: "postgres://app:${PG_A_PASSWORD}@10.0.0.1/app"},
			{Name: "pg-b", DSN: "postgres://app:${PG_B_PASSWORD}@10.0.0.2/app"},
		}
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
// as can be. A host for which no shard is left has no placement.
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

// generatorsExample stands in a new file without generators.
const generatorsExample = `Other ways to make IDs, beside next_id(). Each name has functions next_<name>_id() and next_<name>_ids(n), in
every shard's schema or, where hosts are named, in the schema kiloshard of those. Neither the order of the
hosts of tickets nor the number of classes may ever change.
generators:
  - {kind: tickets, names: [photo, account], hosts: [pg-a, pg-b], of: 2}  # odd and even numbers, from two servers
  - {kind: interleaved, names: [order], of: 8192}                        # shard k makes k, k + of, k + 2 of …
  - {kind: sequence, names: [message], hosts: [pg-a]}                    # one sequence for all shards
  - {kind: row, names: [invoice], hosts: [pg-a]}                         # without a gap, one transaction at a time
  - {kind: uuidv4, names: [session]}
  - {kind: uuidv7, names: [event]}`

// part is a field of the file at its outermost level, with the comment that goes before it.
type part struct{ comment, text string }

// write writes a config whose defaults are filled in.
func (c Config) write(commented bool) []byte {
	var b bytes.Buffer
	if commented {
		b.WriteString(comment("The config of a Kiloshard cluster. All commands read it, and change it only where they say so."))
	}
	for _, p := range c.parts() {
		if commented {
			b.WriteString("\n" + comment(p.comment))
		}
		b.WriteString(p.text + "\n")
	}
	if commented && len(c.Generators) == 0 {
		b.WriteString("\n" + comment(generatorsExample))
	}
	return b.Bytes()
}

func (c Config) parts() []part {
	parts := []part{
		{
			"The cluster's name. It keeps two clusters from sharing a database by mistake.",
			"cluster: " + plain(c.Cluster),
		}, {
			fmt.Sprintf("How many shards exist now. More can be opened later, up to the %d that the layout holds.", c.Layout.MaxShards()),
			fmt.Sprintf("shards: %d", c.Shards),
		}, {
			"What the names of the shards' schemas begin with: shard 42 is " + c.SchemaPrefix + "00042.",
			"schema_prefix: " + plain(c.SchemaPrefix),
		},
	}
	if !c.Epoch.IsZero() {
		parts = append(parts, part{"The moment from which the time in an ID counts. It must not change once shards exist.", "epoch: " + c.Epoch.Format(time.RFC3339Nano)})
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
		}, {
			"Where the map of the shards is kept. file: in this file.",
			fmt.Sprintf("store: {kind: %s}", plain(c.Store.Kind)),
		}, {
			"The Postgres databases: the DSN of the primary, those of its replicas, and the host's share of the\n" +
				"shards beside other hosts. In a DSN ${NAME} stands for a variable of the environment. In the user and\n" +
				"password of a URL its value is percent-encoded, so the variable holds the password as it is.",
			"hosts:" + lines(c.Hosts, writeHost),
		}, {
			`Which shards live on which host, each shard once: 7, 0-1023 or "0-9,77", the last in quotes.`,
			"placement:" + lines(c.Placement, func(p Placement) string {
				return fmt.Sprintf("{shards: %s, host: %s}", shardsText(p.Shards), plain(p.Host))
			}),
		},
	}...)
	if c.Migrations != "" {
		parts = append(parts, part{"The directory of the migrations. A relative one is beside this file.", "migrations: " + plain(c.Migrations)})
	}
	parts = append(parts, part{
		"More schemas in which names are looked up, behind the shard's own, such as [extensions].",
		"search_path: " + flow(c.SearchPath, plain),
	})
	if len(c.Generators) > 0 {
		parts = append(parts, part{
			"Other ways to make IDs, beside next_id().",
			"generators:" + lines(c.Generators, writeGenerator),
		})
	}
	return parts
}

func writeGenerator(g Generator) string {
	text := fmt.Sprintf("{kind: %s, names: %s", plain(string(g.Kind)), flow(g.Names, plain))
	if len(g.Hosts) > 0 {
		text += ", hosts: " + flow(g.Hosts, plain)
	}
	if g.Of != 0 {
		text += fmt.Sprintf(", of: %d", g.Of)
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

// shardsText writes a set, in quotes where its commas would end it.
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
	return "# " + strings.ReplaceAll(text, "\n", "\n# ") + "\n"
}

// plainPattern is text that YAML cannot take for anything but text, even between brackets. The words
// that it can are in notPlain.
var (
	plainPattern = regexp.MustCompile(`^(\.{0,2}/)?[A-Za-z_][A-Za-z0-9_./-]*$`)
	notPlain     = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
)

// plain writes text without quotes where it can stand so.
func plain(text string) string {
	if plainPattern.MatchString(text) && !slices.Contains(notPlain, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}
