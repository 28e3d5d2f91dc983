package rows

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// Compare compares the sums that two functions return, which run at the same time, and returns the differences, such as "photos: 1000 rows on pg-a, 999 on pg-b", and
// how many rows the source has. source and target are the names of the hosts.
func Compare(ctx context.Context, source, target string, ofSource, ofTarget func(context.Context) ([]Sum, error)) (differences []string, count int64, err error) {
	var sums, copied []Sum
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if sums, err = ofSource(both); err != nil {
			return fmt.Errorf("comparing rows on %s: %w", source, err)
		}
		return nil
	})
	group.Go(func() (err error) {
		if copied, err = ofTarget(both); err != nil {
			return fmt.Errorf("comparing rows on %s: %w", target, err)
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	found := map[string]Sum{}
	for _, t := range copied {
		found[t.Table] = t
	}
	for _, s := range sums {
		count += s.Rows
		switch t, ok := found[s.Table]; {
		case !ok:
			differences = append(differences, fmt.Sprintf("%s is not on %s", s.Table, target))
		case s.Rows != t.Rows:
			differences = append(differences, fmt.Sprintf("%s: %d rows on %s, %d on %s", s.Table, s.Rows, source, t.Rows, target))
		case s.Sum != t.Sum:
			differences = append(differences, fmt.Sprintf("%s: %d rows on both, and not the same", s.Table, s.Rows))
		}
	}
	return differences, count, nil
}
