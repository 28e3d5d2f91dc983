package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// call is a request to the service.
type call struct {
	kind         string
	about        shards.ID // whose host it is for; 0 if nobody can know
	method, path string
	key          string // Idempotency-Key
	body         any
}

// attempt is one time that a request was sent.
type attempt struct {
	kind, host string
	ended      time.Duration // since the load began
	failure    string        // "" for success
}

// send sends a request, and again as long as the service says that it is worth it and the user has patience.
func (l *Load) send(ctx context.Context, c call, into any) result {
	r := result{kind: c.kind}
	if c.about != 0 {
		r.host = l.cfg.HostOf(c.about)
	}
	for deadline := time.Now().Add(l.cfg.Patience); ; {
		r.tries++
		failure, pause, again := l.try(ctx, c, into)
		r.failure = failure
		if ctx.Err() == nil {
			l.noteAttempt(attempt{c.kind, r.host, time.Since(l.began), r.failure})
		}
		if !again || time.Now().Add(pause).After(deadline) {
			return r
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1)) // not all at once
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return r
		}
	}
}

// try sends a request once. It returns what went wrong, in few words of which there are few, and whether and when to try
// again.
func (l *Load) try(ctx context.Context, c call, into any) (failure string, pause time.Duration, again bool) {
	var body io.Reader
	if c.body != nil {
		text, err := json.Marshal(c.body)
		if err != nil {
			return "cannot be sent", 0, false
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, c.method, l.cfg.URL+c.path, body)
	if err != nil {
		return "cannot be sent", 0, false
	}
	if c.key != "" {
		request.Header.Set("Idempotency-Key", c.key)
	}
	response, err := l.client.Do(request)
	if err != nil {
		return transportFailure(err), time.Second / 4, true
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return transportFailure(err), time.Second / 4, true
	}
	if response.StatusCode >= 300 {
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		return fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)), time.Duration(seconds) * time.Second, err == nil
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			return "an answer that is no JSON", 0, false
		}
	}
	return "", 0, false
}

func transportFailure(err error) string {
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		return "no answer in 10 s"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection lost"
	}
	return "no connection"
}
