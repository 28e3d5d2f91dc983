package router_test

import (
	"errors"
	"testing"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

func TestFailoverConfig(t *testing.T) {
	t.Parallel()
	config := shards.Config{Cluster: "a", Shards: 1, Epoch: epoch, Hosts: []shards.Host{{Name: "pg-a", DSN: "postgres://app@127.0.0.1/app"}}}
	config.Placement = shards.Evenly(1, config.Hosts)
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	var field *shards.FieldError
	_, err = router.New(t.Context(), router.Config{Map: m, Failover: router.Failover{FailAfter: -1}})
	if !errors.As(err, &field) || field.Field != "Failover.FailAfter" {
		t.Errorf("got %v", err)
	}
	r, err := router.New(t.Context(), router.Config{Map: m, Failover: router.Failover{NoWait: true}})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	for breaker, want := range map[router.Breaker]string{
		router.BreakerClosed: "closed", router.BreakerOpen: "open", router.BreakerHalfOpen: "half-open",
	} {
		if got := breaker.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
