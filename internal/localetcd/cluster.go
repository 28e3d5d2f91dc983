package localetcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// StartCluster starts the members of one cluster, each as [Start] does, and returns when all of them answer. After an
// error no process and no files are left.
func StartCluster(ctx context.Context, cfg Config, members int) ([]*Server, error) {
	servers := make([]*Server, members)
	peers := make([]string, members)
	stop := func(err error) ([]*Server, error) {
		for _, s := range servers {
			if s != nil {
				err = errors.Join(err, s.Stop())
			}
		}
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	for i := range servers {
		var err error
		if servers[i], err = newServer(cfg, fmt.Sprintf("member-%d", i)); err != nil {
			return stop(err)
		}
		peers[i] = servers[i].order.Cluster
	}
	errs := make([]error, members)
	var started sync.WaitGroup
	for i, s := range servers { // none answers before a majority runs
		s.order.Cluster = strings.Join(peers, ",")
		started.Go(func() { errs[i] = s.run(ctx) })
	}
	started.Wait()
	if err := errors.Join(errs...); err != nil {
		return stop(err)
	}
	return servers, nil
}
