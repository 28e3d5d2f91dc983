package provision

import (
	"errors"
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/generators"
	"github.com/kiloshard/kiloshard/shards/provision/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/provision/internal/inventory"
)

// ErrBusy says that another [Create], [Upgrade] or [Grant] is running on a host.
var ErrBusy = hosts.ErrBusy

// MisplacedError reports shards that are on other hosts than the map says. Creating them where the
// map says would hide their rows.
type MisplacedError struct {
	Map    *shards.Map
	Shards []shards.Number
	Hosts  []string // of each shard
}

// Error names the first shard, its host, and its host in the map.
func (e *MisplacedError) Error() string {
	first := e.Shards[0]
	text := fmt.Sprintf("shard %d (%s) lives on %s, the map puts it on %s", first, e.Map.Schema(first), e.Hosts[0], e.Map.Host(first).Name)
	return text + andMore(len(e.Shards)) + "; expected the map to say where shards are: correct its placement, or move the shards"
}

// andMore counts the items of a list that a message does not name.
func andMore(count int) string {
	if count < 2 {
		return ""
	}
	return fmt.Sprintf("; and %d more", count-1)
}

// checkPlacement returns a [MisplacedError] if a shard is missing on its host but exists on another.
func checkPlacement(m *shards.Map, all []*inventory.Host) error {
	e := &MisplacedError{Map: m}
	for n := range m.All().All() {
		schema := m.Schema(n)
		if _, ok := all[m.HostIndex(n)].Shards[schema]; ok {
			continue
		}
		for _, h := range all {
			if h.Shards[schema].Ours {
				e.Shards, e.Hosts = append(e.Shards, n), append(e.Hosts, h.Name)
				break
			}
		}
	}
	if len(e.Shards) == 0 {
		return nil
	}
	return e
}

// ForeignError reports schemas that have the names of shards, on the hosts of these shards, but no objects of a shard:
// neither next_id_seq nor one of its functions.
type ForeignError struct {
	Schemas []string
	Hosts   []string // of each schema
	Owners  []string // roles, one for each schema
}

// Error names the first schema, its host and its owner.
func (e *ForeignError) Error() string {
	text := fmt.Sprintf("schema %s on %s was made by somebody else: it belongs to role %s and has nothing of a shard in it",
		e.Schemas[0], e.Hosts[0], e.Owners[0])
	return text + andMore(len(e.Schemas)) + "; expected no such schema: rename or drop it, or choose another schema_prefix"
}

// checkForeign returns a [ForeignError] if a schema has a shard's name on the shard's host but no objects of a shard.
func checkForeign(m *shards.Map, all []*inventory.Host) error {
	e := &ForeignError{}
	for n := range m.All().All() {
		h := all[m.HostIndex(n)]
		if found, ok := h.Shards[m.Schema(n)]; ok && !found.Ours {
			e.Schemas, e.Hosts, e.Owners = append(e.Schemas, m.Schema(n)), append(e.Hosts, h.Name), append(e.Owners, found.Owner)
		}
	}
	if len(e.Schemas) == 0 {
		return nil
	}
	return e
}

// UntrustedError reports an object on a host that Kiloshard would use with its own role's rights although another role
// owns it, or that has a trigger, a rule, a policy or a default that is not Kiloshard's.
type UntrustedError struct {
	Found    string // such as "schema kiloshard belongs to role mallory"
	Expected string
	More     int // how many others there are
}

// Error describes the object and the expectation.
func (e *UntrustedError) Error() string {
	text := e.Found + "; expected " + e.Expected
	if e.More > 0 {
		text += andMore(1+e.More) + ": see kiloshard verify"
	}
	return text
}

// checkTrust returns a [shards.HostError] around an [UntrustedError] for each host with objects of other roles.
func checkTrust(all []*inventory.Host) error {
	var errs []error
	for _, h := range all {
		if objects := h.Foreign.Objects(); len(objects) > 0 {
			err := &UntrustedError{Found: objects[0].What, Expected: objects[0].Expected, More: len(objects) - 1}
			errs = append(errs, &shards.HostError{Host: h.Name, Err: err})
		}
	}
	return errors.Join(errs...)
}

// ProgressionError reports an existing sequence that makes other numbers than the map says. They would collide with
// those of another server or shard.
type ProgressionError struct {
	Host, Sequence          string
	Start, Step             int64 // found
	ExpectedStart, Expected int64
}

// Error names the sequence and both progressions.
func (e *ProgressionError) Error() string {
	return fmt.Sprintf("sequence %s on %s makes %d and then every %d.; expected %d and then every %d.: "+
		"the order of a generator's hosts, its `of` and its `from` may never change",
		e.Sequence, e.Host, e.Start, e.Step, e.ExpectedStart, e.Expected)
}

// checkProgressions returns a [ProgressionError] if a sequence makes other numbers than the map says.
func checkProgressions(w *inventory.Wanted, all []*inventory.Host) error {
	check := func(h *inventory.Host, wanted []generators.Generator) error {
		clash := h.Generators.Clash(wanted)
		if clash == nil {
			return nil
		}
		return &ProgressionError{
			Host: h.Name, Sequence: clash.Sequence,
			Start: clash.Start, Step: clash.Step, ExpectedStart: clash.WantStart, Expected: clash.WantStep,
		}
	}
	for _, h := range all {
		if err := check(h, w.Generators.OnHost(h.Name)); err != nil {
			return err
		}
	}
	for n := range w.Map.All().All() {
		if err := check(all[w.Map.HostIndex(n)], w.Generators.InShard(n)); err != nil {
			return err
		}
	}
	return nil
}
