package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Check finds what would keep the standby from being promoted, and what an operator should know. The sessions are open.
func (p *Promotion) Check(ctx context.Context) (problems, notes []string, err error) {
	var standby bool
	if err := p.from.QueryRow(ctx, `SELECT pg_is_in_recovery()`).Scan(&standby); err != nil {
		return nil, nil, err
	}
	if standby {
		return []string{p.Source + ": the server is a standby: expected a primary"}, nil, nil
	}
	if err := ledger.Install(ctx, p.from); err != nil {
		return nil, nil, err
	}
	onSource, onTarget, follows, err := p.standby().Check(ctx)
	if err != nil {
		return nil, nil, err
	}
	if follows {
		if err := p.follows(ctx, p.cfg.MaxPause); errors.Is(err, replicate.ErrLate) {
			onTarget.Problems = append(onTarget.Problems, err.Error())
		} else if err != nil {
			return nil, nil, err
		}
	}
	if err := p.change().Check(ctx); err != nil {
		problems = append(problems, err.Error())
	}
	others, err := p.reached(ctx)
	if err != nil {
		return nil, nil, err
	}
	onTarget.Problems = append(onTarget.Problems, others...)
	if on := p.cfg.Map.NumbersOn(p.Target); len(on) > 0 {
		onTarget.Problems = append(onTarget.Problems, fmt.Sprintf("the map has %d shards on it: expected none, since it has the data of %s", len(on), p.Source))
	}
	for _, g := range p.cfg.Map.Generators() {
		if slices.Contains(g.Hosts, p.Source) || slices.Contains(g.Hosts, p.Target) {
			onTarget.Problems = append(onTarget.Problems, fmt.Sprintf("generator %s would be on both hosts and give its numbers twice: expected none on %s", strings.Join(g.Names, ", "), p.Source))
		}
	}
	for host, f := range map[string]checks.Found{p.Source: onSource, p.Target: onTarget} {
		for _, problem := range f.Problems {
			problems = append(problems, host+": "+problem)
		}
		for _, note := range f.Notes {
			notes = append(notes, host+": "+note)
		}
	}
	slices.Sort(problems)
	slices.Sort(notes)
	if ctx.Err() != nil { // which may be the problem
		return nil, notes, context.Cause(ctx)
	}
	return problems, notes, nil
}

// reached finds other ways by which services reach the standby: as a replica of its primary, or at one of its addresses.
func (p *Promotion) reached(ctx context.Context) (problems []string, err error) {
	hosts, ports, err := connect.Addresses(p.src)
	if err != nil {
		return nil, err
	}
	ways := map[string]shards.Host{}
	for i := range hosts {
		if len(hosts) > 1 {
			ways[fmt.Sprintf("address %s:%d of %s in the map", hosts[i], ports[i], p.Source)] = connect.At(p.src, hosts[i], ports[i])
		}
	}
	for i := range p.src.Replicas {
		ways[fmt.Sprintf("replica %d of %s in the map", i, p.Source)] = p.src.Replica(i)
	}
	for what, host := range ways {
		conn, err := session.Open(ctx, host, anyRole)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s does not answer, so it may be this server: expected it to answer, or another map", what))
			continue
		}
		same, _, err := connect.Same(ctx, p.Target, p.to, host.Name, conn)
		session.Close(ctx, conn)
		if err != nil {
			return nil, err
		}
		if same {
			problems = append(problems, fmt.Sprintf("it is %s: expected a map without it, since services would meet two primaries there", what))
		}
	}
	return problems, nil
}

func (p *Promotion) standby() checks.Standby {
	s := checks.Standby{Source: p.from, Target: p.to, SourceName: p.Source, Schemas: "^" + p.cfg.Map.Config().SchemaPrefix + "[0-9]{5}$"}
	for _, m := range p.moves {
		s.Leaving = append(s.Leaving, m.Schema)
	}
	return s
}
