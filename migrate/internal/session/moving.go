package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
)

// ErrMoving says that shards are being moved to another host.
var ErrMoving = errors.New("being moved to another host, see kiloshard move status")

// MovingQuery reads from the ledger of moves which shards are leaving the host, even if their mover is dead. It returns none
// if the ledger is missing or made by another role.
var MovingQuery = fmt.Sprintf(`
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

// Moving returns the shards that are leaving the session's host.
func (s *Session) Moving(ctx context.Context) (shards.Set, error) {
	text, err := s.Value(ctx, LockWait+MovingQuery)
	if err != nil {
		return shards.Set{}, connect.NameHolders(ctx, s.Conn, err)
	}
	return ParseMoving(text)
}

// ParseMoving returns the shards in the answer to [MovingQuery].
func ParseMoving(text string) (shards.Set, error) {
	if strings.TrimSpace(text) == "" {
		return shards.Set{}, nil
	}
	return shards.ParseSet(text)
}
