package replicate

import (
	"context"
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards/move/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// Publish makes the publication of the shard's tables, one by one since FOR TABLES IN SCHEMA takes a superuser, and of this
// move's markers.
func (s Stream) Publish(ctx context.Context) error {
	tables, err := catalog.Replicated(ctx, s.From, s.Schema)
	if err != nil {
		return err
	}
	tables = append(tables, fmt.Sprintf("kiloshard.move_markers WHERE (move = '%s')", s.ID))
	statement := fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s", session.Name(s.Slot()), strings.Join(tables, ", "))
	if err := session.Run(ctx, s.From, statement); err != nil {
		return fmt.Errorf("publication on %s: %w", s.Source, err)
	}
	return nil
}

// Unpublish drops the slot and the publication, if they are there.
func (s Stream) Unpublish(ctx context.Context) error {
	if err := s.DropSlot(ctx); err != nil {
		return err
	}
	return session.Run(ctx, s.From, "DROP PUBLICATION IF EXISTS "+session.Name(s.Slot()))
}

// DropSlot drops the slot if it is there.
func (s Stream) DropSlot(ctx context.Context) error { return DropSlot(ctx, s.From, s.Source, s.Slot()) }
