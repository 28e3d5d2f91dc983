package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

func TestGroupHosts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		texts []string
		want  []string
	}{
		{"none", nil, nil},
		{"one", []string{"host pg-a: down"}, []string{"host pg-a: down"}},
		{"the same of two", []string{"host pg-a: down", "interrupted", "host pg-b: down"}, []string{"hosts pg-a, pg-b: down", "interrupted"}},
		{"two causes", []string{"host pg-a: down", "host pg-b: full"}, []string{"host pg-a: down", "host pg-b: full"}},
		{"no host", []string{"down", "down"}, []string{"down", "down"}},
		{"of two lines", []string{"host pg-a: down:\n\tgone", "host pg-b: down:\n\tgone"}, []string{"hosts pg-a, pg-b: down:\n\tgone"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := GroupHosts(test.texts); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	a, b := &shards.HostError{Host: "pg-a", Err: down}, &shards.HostError{Host: "pg-b", Err: down}
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"one", down, []string{"down"}},
		{"an interrupt", context.Canceled, []string{"interrupted"}},
		{"joined", errors.Join(errors.Join(a, b), down), []string{"host pg-a: down", "host pg-b: down", "down"}},
		{"more than it wraps", fmt.Errorf("both: %w, %w", a, b), []string{"both: host pg-a: down, host pg-b: down"}},
		{"a run that stopped", errors.Join(&shards.PartialError{NotAttempted: shards.SetOf(1), Causes: []error{a, b, context.Canceled}}), []string{"0 of 1 shards done, 0 failed, 1 not attempted: hosts pg-a, pg-b: down; interrupted"}},
		{"a run with nothing to say", &shards.PartialError{Failed: []*shards.ShardError{}}, []string{"0 of 0 shards done, 0 failed, 0 not attempted"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := texts(test.err, false); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
