package large

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"
)

// batchSize is how many bytes are copied at a time.
const batchSize = 1 << 20

// batch is some pieces of large objects.
type batch struct {
	oids    []uint32
	offsets []int64
	sizes   []int32
}

// batches returns all pieces of objects, about batchSize bytes at a time.
func batches(objects []Object) iter.Seq[batch] {
	return func(yield func(batch) bool) {
		var b batch
		var size int64
		for _, o := range objects {
			for at := int64(0); at < o.Size; at += batchSize {
				n := min(batchSize, o.Size-at)
				b.oids, b.offsets, b.sizes = append(b.oids, o.OID), append(b.offsets, at), append(b.sizes, int32(n)) //nolint:gosec // it is small
				if size += n; size >= batchSize {
					if !yield(b) {
						return
					}
					b, size = batch{}, 0
				}
			}
		}
		if size > 0 {
			yield(b)
		}
	}
}

// read returns the bytes of the pieces.
func (b batch) read(ctx context.Context, tx pgx.Tx) ([][]byte, error) {
	const query = `SELECT lo_get(o, at, size) FROM unnest($1::oid[], $2::bigint[], $3::int[]) WITH ORDINALITY p (o, at, size, n) ORDER BY n`
	rows, err := tx.Query(ctx, query, b.oids, b.offsets, b.sizes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[[]byte])
}
