package cli

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

func TestShortSet(t *testing.T) {
	t.Parallel()
	var even []shards.Number
	for n := shards.Number(0); n < 40; n += 2 {
		even = append(even, n)
	}
	all := shards.SetOf(even...)
	tests := []struct {
		name, output string
		set          shards.Set
		want         string
	}{
		{"few", Table, shards.SetOf(1, 2, 3, 9), "1-3,9"},
		{"many", Table, all, "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28 and 5 more"},
		{"many for a script", Plain, all, all.String()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := (&App{Output: test.output}).ShortSet(test.set); got != test.want {
				t.Errorf("got %q, expected %q", got, test.want)
			}
		})
	}
}
