package ids

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
)

// scheme is how IDs are made: those of a map, or those that flags describe.
type scheme struct {
	name   string // of a published one, such as "twitter"; empty otherwise
	layout shards.Layout
	epoch  time.Time   // means nothing without a time
	m      *shards.Map // nil for a foreign one

	// What its owner calls shard, type and sequence, where not so; and what a shard is made of.
	shard, typ, sequence string
	within               []field
}

// field is a run of bits of an ID. One without a name is not used.
type field struct {
	name   string
	bits   int
	within []field // what it is made of, from the high bits down
}

// published are the schemes that have a name. Instagram's epoch is that of the function which it
// published; the article's example counts from the beginning of 2011.
var published = []scheme{
	{name: "instagram", layout: shards.DefaultLayout, epoch: time.UnixMilli(1314220021721).UTC()},
	{name: "pinterest", layout: shards.Layout{Shard: 16, Type: 10, Sequence: 36}, sequence: "local"},
	{
		name: "twitter", layout: shards.Layout{Time: 41, Shard: 10, Sequence: 12}, epoch: time.UnixMilli(1288834974657).UTC(),
		shard: "machine", within: []field{{name: "datacenter", bits: 5}, {name: "worker", bits: 5}},
	},
	{
		name: "discord", layout: shards.Layout{Time: 42, Shard: 5, Type: 5, Sequence: 12}, epoch: time.UnixMilli(1420070400000).UTC(),
		shard: "worker", typ: "process", sequence: "increment",
	},
}

// fields returns the fields of an ID from the high bits down, 64 bits in all.
func (s scheme) fields() []field {
	or := func(name, standard string) string {
		if name == "" {
			return standard
		}
		return name
	}
	l := s.layout
	all := []field{
		{bits: 64 - l.Time - l.Shard - l.Type - l.Sequence},
		{name: "time", bits: l.Time},
		{name: or(s.shard, "shard"), bits: l.Shard, within: s.within},
		{name: or(s.typ, "type"), bits: l.Type},
		{name: or(s.sequence, "sequence"), bits: l.Sequence},
	}
	fields := all[:0]
	for _, f := range all {
		if f.bits > 0 {
			fields = append(fields, f)
		}
	}
	return fields
}

// text names the scheme: by its name, or by its layout.
func (s scheme) text() string {
	if s.name != "" {
		return s.name
	}
	return s.layout.String()
}

// schemeFlags are the flags that name the scheme of an ID.
type schemeFlags struct{ layout, epoch string }

func (f *schemeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.layout, "layout", "",
		"the layout of another system's IDs: instagram, pinterest, twitter, discord, or its bits, such as time:41,shard:13,sequence:10; no config is read then")
	cmd.Flags().StringVar(&f.epoch, "epoch", "",
		"the start of the time of --layout: 2011-01-01T00:00:00Z, 2011-01-01, or milliseconds since 1970")
}

// schemeOf returns the scheme that the flags name, and without flags that of the map.
func schemeOf(ctx context.Context, a *cli.App, f schemeFlags) (scheme, error) {
	if f.layout == "" {
		if f.epoch != "" {
			return scheme{}, cli.Usagef("--epoch: expected --layout with it; without it the config's epoch counts")
		}
		_, m, err := a.LoadMapOffline(ctx)
		if err != nil {
			return scheme{}, err
		}
		return scheme{layout: m.Layout(), epoch: m.Epoch(), m: m}, nil
	}
	s, err := parseScheme(f.layout)
	if err != nil {
		return scheme{}, err
	}
	switch {
	case f.epoch != "" && !s.layout.HasTime():
		return scheme{}, cli.Usagef("--epoch: expected none, since IDs of layout %s hold no time", s.text())
	case f.epoch != "":
		s.epoch, err = parseEpoch(f.epoch)
		return s, err
	case s.epoch.IsZero() && s.layout.HasTime():
		return scheme{}, cli.Usagef("--layout %s: expected --epoch with it, the time that its milliseconds count from", f.layout)
	}
	return s, nil
}

// parseScheme reads the name of a published scheme, or a layout such as time:41,shard:13,sequence:10.
func parseScheme(text string) (scheme, error) {
	var names []string
	for _, s := range published {
		if s.name == text {
			return s, nil
		}
		names = append(names, s.name)
	}
	if !strings.Contains(text, ":") {
		return scheme{}, cli.Usagef("--layout %q: expected %s, or bits such as time:41,shard:13,sequence:10", text, strings.Join(names, ", "))
	}
	var l shards.Layout
	fields := map[string]*int{"time": &l.Time, "shard": &l.Shard, "type": &l.Type, "sequence": &l.Sequence}
	given := map[string]bool{}
	for item := range strings.SplitSeq(text, ",") {
		name, bits, _ := strings.Cut(item, ":")
		to := fields[name]
		n, err := strconv.ParseUint(bits, 10, 8)
		if to == nil || given[name] || err != nil {
			return scheme{}, cli.Usagef("--layout %q: found %q; expected the bits of time, shard, type and sequence, each once, such as shard:13", text, item)
		}
		*to, given[name] = int(n), true
	}
	for _, name := range []string{"time", "shard", "sequence"} {
		if !given[name] {
			return scheme{}, cli.Usagef("--layout %q: found no %s; expected time, shard and sequence, with time:0 for IDs without a time", text, name)
		}
	}
	if err := l.Validate(); err != nil {
		return scheme{}, cli.Usage(fmt.Errorf("--layout %q: %w", text, err))
	}
	return scheme{layout: l}, nil
}

// parseEpoch parses a time, a day or milliseconds since 1970.
func parseEpoch(text string) (time.Time, error) {
	const expected = "a time from 1970 on, in whole milliseconds, such as 2011-01-01T00:00:00Z, 2011-01-01 or 1314220021721"
	var epoch time.Time
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		epoch = time.UnixMilli(ms)
	} else if epoch, err = time.Parse(time.RFC3339Nano, text); err != nil {
		if epoch, err = time.Parse(time.DateOnly, text); err != nil {
			return epoch, cli.Usagef("--epoch %q: expected %s", text, expected)
		}
	}
	epoch = epoch.UTC()
	if epoch.Year() < 1970 || epoch.Year() > 5000 || epoch.Nanosecond()%int(time.Millisecond) != 0 {
		return epoch, cli.Usagef("--epoch %q: expected %s", text, expected)
	}
	return epoch, nil
}
