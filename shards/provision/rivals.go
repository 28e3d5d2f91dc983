package provision

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// rivalLimit is how long a host's addresses and replicas have to answer [Rivals].
const rivalLimit = 10 * time.Second

// Rival is a server that takes writes although another one is the primary of its host: the host has two, and neither has what is written to
// the other. It is at one of the host's addresses, or a replica that was promoted.
type Rival struct {
	Host            string `json:"host"`
	Primary         string `json:"primary"`          // host:port of the address that was promoted last
	PrimaryTimeline uint32 `json:"primary_timeline"` // 0 if the role may not see it, likewise below
	Address         string `json:"address"`          // host:port of the other server
	Timeline        uint32 `json:"timeline"`
	Replica         bool   `json:"replica"` // it is one in the map
	OtherCluster    bool   `json:"other_cluster"`
}

// String names both servers.
func (r Rival) String() string {
	other := ""
	switch {
	case r.OtherCluster:
		other = " of another cluster"
	case r.Replica:
		other = ", a replica in the map"
	}
	return fmt.Sprintf("host %s has two primaries, %s%s and %s%s%s: expected one; what is written to the other one is missing there",
		r.Host, r.Primary, onTimeline(r.PrimaryTimeline), r.Address, onTimeline(r.Timeline), other)
}

func onTimeline(timeline uint32) string {
	if timeline == 0 {
		return ""
	}
	return fmt.Sprintf(" on timeline %d", timeline)
}

// Rivals returns the servers that take writes beside the primary of their host, in the order of the map's hosts. It asks each address of a
// host and each replica for its role, all at once, and leaves out those that do not answer within a few seconds. A replica of another cluster
// is none, since nothing reads from it.
func Rivals(ctx context.Context, m *shards.Map) []Rival {
	ctx, cancel := context.WithTimeout(ctx, rivalLimit)
	defer cancel()
	found := make([][]Rival, len(m.Hosts()))
	var wg sync.WaitGroup
	for i, host := range m.Hosts() {
		addresses := addressesOf(host)
		replicas := replicasOf(host, addresses)
		if len(addresses)+len(replicas) < 2 {
			continue
		}
		wg.Go(func() {
			others := askReplicas(ctx, replicas)
			all, primary := findPrimary(ctx, addresses)
			found[i] = rivals(host.Name, all, others(primary))
			if primary != nil {
				primary.close(ctx)
			}
		})
	}
	wg.Wait()
	return slices.Concat(found...)
}

// askReplicas begins to read the roles of a host's replicas. The returned function waits for them, and compares them with the primary unless that
// is nil.
func askReplicas(ctx context.Context, replicas []*address) func(primary *address) []AddressStatus {
	asked := make(chan []AddressStatus, 1)
	go func() { asked <- readRoles(ctx, replicas) }()
	return func(primary *address) []AddressStatus {
		all := <-asked
		for i, a := range replicas {
			if primary != nil {
				all[i].compare(a.role, primary.role)
			}
			a.close(ctx)
		}
		return all
	}
}

// rivals returns the rivals among the addresses of a host and its replicas.
func rivals(host string, addresses, replicas []AddressStatus) (all []Rival) {
	at := slices.IndexFunc(addresses, func(s AddressStatus) bool { return s.Primary })
	if at < 0 {
		return nil
	}
	add := func(s AddressStatus, replica bool) {
		if s.Rival && !(replica && s.OtherCluster) {
			all = append(all, Rival{
				Host: host, Primary: addresses[at].Address, PrimaryTimeline: addresses[at].Timeline, Address: s.Address, Timeline: s.Timeline,
				Replica: replica, OtherCluster: s.OtherCluster,
			})
		}
	}
	for _, s := range addresses {
		add(s, false)
	}
	for _, s := range replicas {
		add(s, true)
	}
	return all
}
