package load

import "time"

// settle is for how long after an event its effects count as its own.
const settle = time.Second

// event is something that happened to the service while it was used.
type event struct {
	name     string
	apart    bool
	from, to time.Time
}

// has tells whether a moment, as time since the load began, is one of the event.
func (l *Load) has(e event, moment time.Duration) bool {
	at := l.began.Add(moment)
	return !at.Before(e.from) && at.Before(e.to.Add(settle))
}

// request is a request from the moment when it was due until it succeeded or was given up.
type request struct {
	result
	due, took time.Duration
}

// During notes that something happens to the service while fn runs. It returns fn's error. With apart, the report tells
// the hosts apart.
func (l *Load) During(name string, apart bool, fn func() error) error {
	from := time.Now()
	err := fn()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event{name, apart, from, time.Now()})
	return err
}

func (l *Load) note(r result, due time.Duration) {
	took := time.Since(l.began) - due
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, request{r, due, took})
}

func (l *Load) noteAttempt(a attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts = append(l.attempts, a)
}
