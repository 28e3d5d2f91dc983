package harness_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
)

func TestRun(t *testing.T) {
	t.Parallel()
	parts := []harness.Part[int]{{Name: "walk"}, {Name: "run"}, {Name: "fall"}}
	for _, test := range []struct {
		only []string
		ran  []string
		err  string
	}{
		{nil, []string{"walk", "run", "fall"}, "fall: too slow"},
		{[]string{"run", "walk"}, []string{"walk", "run"}, "<nil>"},
		{[]string{"walk", "fly"}, nil, `part "fly": expected one of walk, run, fall`},
	} {
		var ran []string
		err := harness.Run(parts, test.only, func(p harness.Part[int]) error {
			ran = append(ran, p.Name)
			if p.Name == "fall" {
				return errors.New("too slow")
			}
			return nil
		})
		if fmt.Sprint(err) != test.err || !slices.Equal(ran, test.ran) {
			t.Errorf("only %q: ran %q, %v", test.only, ran, err)
		}
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	var turns []string
	err := harness.Turns(3, 2, func(round, side int) error {
		turns = append(turns, fmt.Sprint(round, side))
		if round == 2 {
			return errors.New("the end")
		}
		return nil
	})
	if want := []string{"0 0", "0 1", "1 1", "1 0", "2 0"}; err == nil || !slices.Equal(turns, want) {
		t.Errorf("got %q, %v, expected %q and an error", turns, err, want)
	}
}
