// Package network delays connections.
package network

import (
	"fmt"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// toxicOf returns a toxic that delays one direction, "upstream" or "downstream".
func toxicOf(delay time.Duration, direction string) string {
	if delay%time.Millisecond == 0 {
		return fmt.Sprintf(`{"type": "latency", "stream": %q, "attributes": {"latency": %d}}`, direction, delay.Milliseconds())
	}
	return fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": {"us": %d}}`, delayToxicName, direction, delay.Microseconds())
}

// delayToxic is a latency toxic in microseconds: toxiproxy's own uses milliseconds, and Go's timers may be 1 ms late. It
// blocks a thread while it waits, so use it for few connections.
type delayToxic struct {
	Microseconds int64 `json:"us"`
}

const delayToxicName = "delay"

func init() { toxics.Register(delayToxicName, new(delayToxic)) } //nolint:gochecknoinits // toxiproxy requires it

// GetBufferSize implements [toxics.BufferedToxic].
func (*delayToxic) GetBufferSize() int { return 1024 }

// Pipe implements [toxics.Toxic].
func (d *delayToxic) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
			due := chunk.Timestamp.Add(time.Duration(d.Microseconds) * time.Microsecond)
			sleep(time.Until(due))
			chunk.Timestamp = due
			stub.Output <- chunk
		}
	}
}
