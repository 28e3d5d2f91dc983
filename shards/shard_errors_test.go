package shards_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	third := &shards.ShardError{Shard: 3, Schema: "shard_00003", Host: "pg-a", Err: io.EOF}
	fourth := &shards.ShardError{Shard: 4, Schema: "shard_00004", Host: "pg-a", Err: io.EOF}
	refused := &shards.HostError{Host: "pg-b", Err: errors.New("connection refused")}
	tests := []struct {
		name string
		err  error
		text string
	}{
		{"field", &shards.FieldError{Field: "shards", Found: "0", Expected: "1 to 8192"}, "shards: 0; expected 1 to 8192"},
		{"field of a file", &shards.FieldError{File: "k.yaml", Field: "shards", Found: "0", Expected: "1 to 8192"}, "k.yaml: shards: 0; expected 1 to 8192"},
		{"field of a line", &shards.FieldError{File: "k.yaml", Line: 3, Field: "shards", Found: "0", Expected: "1 to 8192"}, "k.yaml:3: shards: 0; expected 1 to 8192"},
		{"no field", &shards.FieldError{File: "k.yaml", Line: 3, Found: "broken YAML"}, "k.yaml:3: broken YAML"},
		{"shard", third, "shard 3 (shard_00003 on pg-a): EOF"},
		{"host", refused, "host pg-b: connection refused"},
		{"partial: one failed", &shards.PartialError{Done: shards.SetOf(0, 1, 2), Failed: []*shards.ShardError{third}}, "3 of 4 shards done, 1 failed, 0 not attempted: shard 3 (shard_00003 on pg-a): EOF"},
		{
			"partial: two failed, one host gone", &shards.PartialError{
				Done: shards.SetOf(0), Failed: []*shards.ShardError{third, fourth}, NotAttempted: shards.SetOf(5, 6),
				Causes: []error{refused, context.Canceled},
			},
			"1 of 5 shards done, 2 failed, 2 not attempted: host pg-b: connection refused; context canceled; shard 3 (shard_00003 on pg-a): EOF; and 1 more",
		},
		{
			"partial: a host gone, and a shard of it", &shards.PartialError{
				Failed: []*shards.ShardError{{Shard: 5, Schema: "shard_00005", Host: "pg-b", Err: refused}}, NotAttempted: shards.SetOf(6),
				Causes: []error{refused},
			},
			"0 of 2 shards done, 1 failed, 1 not attempted: host pg-b: connection refused; shard 5 (shard_00005 on pg-b): the same",
		},
		{"partial: nothing known", &shards.PartialError{NotAttempted: shards.SetOf(5)}, "0 of 1 shards done, 0 failed, 1 not attempted"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.err.Error(); got != test.text {
				t.Fatalf("got      %s\nexpected %s", got, test.text)
			}
		})
	}
}

func TestErrorsUnwrap(t *testing.T) {
	t.Parallel()
	err := error(&shards.PartialError{
		Failed: []*shards.ShardError{
			{Shard: 3, Err: io.EOF},
			{Shard: 4, Err: io.ErrUnexpectedEOF},
		},
		Causes: []error{&shards.HostError{Host: "pg-b", Err: context.DeadlineExceeded}},
	})
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded} {
		if !errors.Is(err, target) {
			t.Errorf("is not %v", target)
		}
	}
	var shard *shards.ShardError
	var host *shards.HostError
	if !errors.As(err, &shard) || shard.Shard != 3 || !errors.As(err, &host) || host.Host != "pg-b" {
		t.Errorf("got %v and %v", shard, host)
	}
	if errors.Is(err, context.Canceled) {
		t.Error("is context.Canceled")
	}
}
