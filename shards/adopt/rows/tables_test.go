package rows_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards/adopt/rows"
)

// TestThereAndBack moves all rows into tables of shards and back, and there again, while clients write.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	b := setup(t, service, decisions)
	all := b.write(6)
	cfg := b.config()
	cfg.Batch, cfg.Group = 50, 2
	all.await(t, 200)
	result, err := rows.Tables(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if result.Gate != "tables" || result.Tables.Len() != 4 {
		t.Errorf("%+v", result)
	}
	all.await(t, 200)
	if result, err = rows.Back(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if result.Gate != "views" || result.Tables.Len() != 0 {
		t.Errorf("%+v", result)
	}
	all.await(t, 200)
	if _, err := rows.Tables(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	all.await(t, 200)
	all.end()
	all.check(t)
	if _, err := rows.Back(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	all.check(t)
}
