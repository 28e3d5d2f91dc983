package router

import (
	"errors"
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

var (
	errClosed = errors.New("the router is closed")
	errTxLeft = errors.New("the SQL left its transaction open, which has been rolled back: use Begin")
)

func noShard(n shards.Number, m *shards.Map) error {
	return fmt.Errorf("shard %d, the map has shards 0 to %d: %w", n, m.Len()-1, shards.ErrNoShard)
}
