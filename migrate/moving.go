package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// ErrMoving says that shards are being moved to another host. They are not attempted; run again after the move.
var ErrMoving = errors.New("being moved to another host, see kiloshard move status")

// movingQuery reads from the ledger of moves which shards are leaving the host, even if their mover is dead. It returns none
// if the ledger is missing or made by another role.
var movingQuery = fmt.Sprintf(`
do $kiloshard$
declare
	moving text := '';
begin
	if to_regclass('kiloshard.moves') is not null and not exists (select from (%s) f where kind <> 'grant') then
		execute $query$ select coalesce(string_agg(shard::text, ','), '') from kiloshard.moves where outcome is null and side = 'source' $query$ into moving;
	end if;
	perform set_config('kiloshard.moving', moving, true);
end $kiloshard$;
select current_setting('kiloshard.moving')`, sql.Foreign(sql.Ours{}))

// moving returns the shards that are leaving the session's host.
func (s *session) moving(ctx context.Context) (shards.Set, error) {
	text, err := s.value(ctx, lockWait+movingQuery)
	if err != nil {
		return shards.Set{}, connect.NameHolders(ctx, s.conn, err)
	}
	return parseMoving(text)
}

func parseMoving(text string) (shards.Set, error) {
	if strings.TrimSpace(text) == "" {
		return shards.Set{}, nil
	}
	return shards.ParseSet(text)
}

// movingError is the error of shards that a run skips because they are being moved.
func movingError(moving shards.Set) error {
	return fmt.Errorf("shards %s: %w", moving, ErrMoving)
}
