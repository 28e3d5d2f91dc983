package migrate

import (
	"context"
	"fmt"
	"sync"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// survey is what one host said of its shards.
type survey struct {
	fanout.Work
	standings map[shards.Number]standing
	err       error // a [shards.HostError]; then standings is empty
}

// look asks all hosts at once where their shards stand, by one query a host.
func look(ctx context.Context, sessions *sessions, m *shards.Map, plan []fanout.Work) []survey {
	surveys := make([]survey, len(plan))
	var wg sync.WaitGroup
	for i, work := range plan {
		wg.Go(func() {
			surveys[i] = survey{Work: work}
			s, err := sessions.take(ctx, work.Host)
			if err == nil {
				surveys[i].standings, err = s.standings(ctx, m, work.Shards)
				sessions.give(s)
			}
			if err != nil {
				surveys[i].err = &shards.HostError{Host: work.Host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	return surveys
}

// troubles returns the hosts that did not answer, and the shards that no run may touch: those that
// are not created, have no readable version, or one above newest.
func troubles(m *shards.Map, surveys []survey, newest int32) (hosts []error, failed []*shards.ShardError) {
	for _, host := range surveys {
		if host.err != nil {
			hosts = append(hosts, host.err)
			continue
		}
		for _, n := range host.Shards {
			if err := host.standings[n].trouble(newest); err != nil {
				failed = append(failed, &shards.ShardError{Shard: n, Schema: m.Schema(n), Host: host.Host.Name, Err: err})
			}
		}
	}
	return hosts, failed
}

// trouble returns why no run may touch a shard that stands there, or nil.
func (s standing) trouble(newest int32) error {
	if s.err == nil && s.version > newest {
		return fmt.Errorf("%w: it stands at %d, the newest file is %d", ErrAhead, s.version, newest)
	}
	return s.err
}
