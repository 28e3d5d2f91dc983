package provision

import (
	"context"
	"errors"
)

// purpose is what [CreateConfig.begin] begins.
type purpose struct {
	locks bool // it changes something, so it takes the hosts' locks
	makes bool // it also makes what is missing, and not only what is old

	repairs bool // it takes functions that somebody has changed for old
}

// begin connects to all hosts of the map, takes their locks, looks at what they hold, refuses what nobody may work on,
// and plans what there is to do. Without an error the sessions are to be closed.
func (cfg CreateConfig) begin(ctx context.Context, to purpose) (_ *sessions, _ *work, err error) {
	open := open
	if to.makes && to.locks {
		open = openAnyCluster // the installation takes over a host of another cluster, or refuses it if it holds shards
	}
	s, err := connectAll(ctx, cfg.Map.Hosts(), open)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			s.close(ctx)
		}
	}()
	if err := s.checkDistinct(ctx); err != nil {
		return nil, nil, err
	}
	if to.locks {
		if err := s.lock(ctx, cfg.Wait); err != nil {
			return nil, nil, err
		}
	}
	inventories, err := s.takeAll(ctx, cfg.Map, to.repairs)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(untrusted(inventories), clash(cfg.Map, inventories), checkKeys(cfg.Map, inventories)); err != nil {
		return nil, nil, err
	}
	w := plan(cfg.Map, inventories, to)
	if to.makes {
		if err := s.checkRoles(ctx, w.grants); err != nil {
			return nil, nil, err
		}
	}
	return s, w, nil
}
