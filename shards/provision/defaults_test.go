package provision_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestVerifyOfDefaults gives each table its own sequence, as Instagram did, and breaks the defaults that use them.
func TestVerifyOfDefaults(t *testing.T) {
	t.Parallel()
	const photos = `
		create sequence shard_00003.photos_id_seq maxvalue 1125899906842623;
		create table shard_00003.photos (n int, id bigint primary key default shard_00003.next_id('shard_00003.photos_id_seq'));
		create table shard_00003.tags (id bigint default shard_00003.next_id(), other bigint default 7);`
	const right = "type bigint, start 1, increment 1, minimum 1, maximum 1125899906842623, cache 1, cycle false, permanent"
	tests := []struct {
		name, change string
		kind         provision.Kind // empty for no difference
		found, want  string
	}{
		{"as it should be", "", "", "", ""},
		{
			"another shard's function", "alter table shard_00003.tags alter id set default shard_00004.next_id()",
			provision.KindFunction, "the default of tags.id calls shard_00004.next_id", "shard_00003.next_id",
		},
		{
			"another shard's function within an expression", "alter table shard_00003.tags alter other set default abs(shard_00004.next_id() + 1)",
			provision.KindFunction, "the default of tags.other calls shard_00004.next_id", "shard_00003.next_id",
		},
		{
			"another shard's sequence", "create sequence shard_00004.photos_id_seq maxvalue 1125899906842623; alter table shard_00003.photos alter id set default shard_00003.next_id('shard_00004.photos_id_seq')",
			provision.KindSequence, "the default of photos.id draws from shard_00004.photos_id_seq", "a sequence of shard_00003",
		},
		{
			"nobody's sequence", "alter sequence shard_00003.photos_id_seq set schema public",
			provision.KindSequence, "the default of photos.id draws from public.photos_id_seq", "a sequence of shard_00003",
		},
		{
			"a cache", "alter sequence shard_00003.photos_id_seq cache 20",
			provision.KindSequence, "the default of photos.id draws from shard_00003.photos_id_seq, which has type bigint, start 1, increment 1, minimum 1, maximum 1125899906842623, cache 20, cycle false", right,
		},
		{
			"a type", "alter sequence shard_00003.photos_id_seq as int maxvalue 2147483647",
			provision.KindSequence, "the default of photos.id draws from shard_00003.photos_id_seq, which has type integer, start 1, increment 1, minimum 1, maximum 2147483647, cache 1, cycle false", right,
		},
		{"an increment", "alter sequence shard_00003.photos_id_seq increment 2", provision.KindSequence, "increment 2", right},
		{"a cycle", "alter sequence shard_00003.photos_id_seq cycle", provision.KindSequence, "cycle true", right},
		{"no maximum", "alter sequence shard_00003.photos_id_seq no maxvalue", provision.KindSequence, "maximum 9223372036854775807", right},
		{"a sequence that no next_id draws from", "create table shard_00003.counts (id bigserial)", "", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := created(t, 16)
			on(t, m.Host(3), photos+test.change)
			differences, err := provision.Verify(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if test.kind == "" {
				if len(differences) > 0 {
					t.Errorf("got %v, expected no difference", differences)
				}
				return
			}
			if len(differences) != 1 {
				t.Fatalf("got %v, expected one difference", differences)
			}
			d := differences[0]
			if d.Kind != test.kind || d.Host != "pg-a" || d.Schema != "shard_00003" || !strings.Contains(d.Found, test.found) || d.Want != test.want {
				t.Errorf("got %s\nexpected %s: … %s …; expected %s", d, test.kind, test.found, test.want)
			}
		})
	}
}

// TestOtherLayouts creates shards with types, with and without a time, and verifies them.
func TestOtherLayouts(t *testing.T) {
	t.Parallel()
	for _, layout := range []shards.Layout{
		{Shard: 16, Type: 10, Sequence: 36},
		{Shard: 16, Sequence: 40},
		{Time: 41, Shard: 10, Type: 4, Sequence: 8},
	} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			c := shardtest.MapConfig(16, shardtest.Hosts(t, 2))
			c.Layout = layout
			m := build(t, c)
			create(t, m)
			checkComplete(t, m)
			if report := create(t, m); report.Created.Len() != 0 {
				t.Errorf("the second run created %s", report.Created)
			}
			on(t, m.Host(3), fmt.Sprintf("alter sequence shard_00003.next_id_seq maxvalue %d", layout.MaxSequenceValue()-1))
			function := "next_id()"
			if layout.Type > 0 {
				function = "next_id(regclass, int)"
			}
			on(t, m.Host(12), "drop function shard_00012."+function)
			differences, err := provision.Verify(t.Context(), m)
			if err != nil || len(differences) != 2 || differences[0].Kind != provision.KindSequence || differences[1].Kind != provision.KindFunction {
				t.Errorf("got %v, %v, expected a sequence and a function", differences, err)
			}
			if report := create(t, m); report.Completed.String() != "12" {
				t.Errorf("completed %s, expected 12", report.Completed)
			}
		})
	}
}

func TestEpochWithoutTime(t *testing.T) {
	t.Parallel()
	c := shardtest.MapConfig(8, shardtest.Hosts(t, 2))
	c.Layout = shards.Layout{Shard: 16, Type: 10, Sequence: 36}
	create(t, build(t, c))
	c.Epoch = c.Epoch.AddDate(1, 0, 0)
	m := build(t, c)
	create(t, m)
	checkComplete(t, m)
}
