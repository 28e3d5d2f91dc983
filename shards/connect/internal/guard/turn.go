package guard

import (
	"fmt"
	"sync"
	"time"
)

// turn lets one login at a time compute many iterations for the host of a config, in a quarter of the time at most: a host that
// accepts logins and ends them at once must not take the processors from the others.
type turn struct {
	taken chan struct{} // has room for one
	limit time.Duration // of the wait
}

// turnLimit ends the turn of a login that writes nothing.
const turnLimit = 5 * time.Second

// take waits for the turn. The login calls computed, and then rest, which lets the next one follow after three times as long as this
// one has computed; at once if it was canceled, as many are when their pool is closed.
func (t turn) take() (computed func() (rest func(canceled bool)), err error) {
	select {
	case t.taken <- struct{}{}:
	case <-time.After(t.limit):
		return nil, fmt.Errorf("the server asks for more than %d iterations of SCRAM, which one login at a time computes, and others did for %s", cheapIterations, t.limit)
	}
	began, end := time.Now(), sync.OnceFunc(func() { <-t.taken })
	time.AfterFunc(turnLimit, end)
	return func() func(bool) {
		pause := 3 * time.Since(began)
		return func(canceled bool) {
			if canceled {
				pause = 0
			}
			time.AfterFunc(pause, end)
		}
	}, nil
}
