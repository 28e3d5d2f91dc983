package migrate

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/kiloshard/kiloshard/migrate/versions"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// survey is what one host said of its shards.
type survey struct {
	fanout.Work
	standings map[shards.Number]standing
	changed   []ChangedFile
	err       error // a [shards.HostError]; then standings is empty
}

// look asks all hosts at once where their shards stand and which files they have in another form, by one message to each.
func look(ctx context.Context, sessions *sessions, m *shards.Map, d *directory, plan []fanout.Work) []survey {
	surveys := make([]survey, len(plan))
	var wg sync.WaitGroup
	for i, work := range plan {
		wg.Go(func() {
			surveys[i] = survey{Work: work}
			s, err := sessions.take(ctx, work.Host)
			if err == nil {
				surveys[i].standings, surveys[i].changed, err = s.survey(ctx, m, d, work.Shards)
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

// survey asks for both in one message.
func (s *session) survey(ctx context.Context, m *shards.Map, d *directory, numbers []shards.Number) (map[shards.Number]standing, []ChangedFile, error) {
	schemas := schemasOf(m, numbers)
	answers, err := s.values(ctx, versions.Query(schemas)+";"+d.changedQuery())
	if err != nil {
		return nil, nil, fmt.Errorf("versions of its shards and its ledger: %w", err)
	}
	standings, err := parseStandings(answers[0], schemas, numbers)
	if err != nil {
		return nil, nil, err
	}
	changed, err := parseChanged(answers[1], shards.SetOf(numbers...))
	return standings, changed, err
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

// mergeChanges joins what two hosts have in another form.
func mergeChanges(all, more []ChangedFile) []ChangedFile {
	for _, c := range more {
		i := slices.IndexFunc(all, func(a ChangedFile) bool { return a.Version == c.Version && a.File == c.File })
		if i < 0 {
			all = append(all, c)
			continue
		}
		all[i].Shards = shards.SetOfRanges(append(all[i].Shards.Ranges(), c.Shards.Ranges()...)...)
	}
	slices.SortFunc(all, func(a, b ChangedFile) int { return int(a.Version - b.Version) })
	return all
}
