package ids_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
)

// TestParentsAndChildren writes albums with their photos: all IDs are known before the first row is sent.
func TestParentsAndChildren(t *testing.T) {
	t.Parallel()
	shard := setup(t).shard(t, 3)
	_, err := shard.Exec(t.Context(), `
		create table albums (id bigint primary key);
		create table photos (id bigint primary key, album_id bigint not null references albums)`)
	if err != nil {
		t.Fatal(err)
	}
	lease := ids.NewLease(ids.LeaseConfig[shards.ID]{Generator: shard})
	defer lease.Close()

	// In one batch, which is one round trip.
	made, err := lease.NextIDs(t.Context(), 11)
	if err != nil {
		t.Fatal(err)
	}
	album, photos := made[0], made[1:]
	var batch pgx.Batch
	batch.Queue("insert into albums (id) values ($1)", album)
	for _, photo := range photos {
		batch.Queue("insert into photos (id, album_id) values ($1, $2)", photo, album)
	}
	if err := shard.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}

	// By COPY.
	var rows [][]any
	for range 1000 {
		photo, err := lease.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, []any{photo, album})
	}
	if _, err := shard.CopyFrom(t.Context(), pgx.Identifier{"photos"}, []string{"id", "album_id"}, pgx.CopyFromRows(rows)); err != nil {
		t.Fatal(err)
	}

	var count int
	var ofShard bool
	const query = `
		select count(*), bool_and(kiloshard.id_shard(p.id) = 3)
		from photos p join albums a on a.id = p.album_id and p.id > a.id`
	if err := shard.QueryRow(t.Context(), query).Scan(&count, &ofShard); err != nil || count != 1010 || !ofShard {
		t.Errorf("%d photos, of the shard %t, %v; expected 1010 that were made after their album", count, ofShard, err)
	}
}
