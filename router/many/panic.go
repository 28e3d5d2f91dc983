package many

import (
	"fmt"
	"runtime/debug"
)

// panicked is a panic in what a caller gave, such as Scan, on its way from a goroutine of ours to the caller's.
type panicked struct {
	cause any
	stack []byte
}

// Error has the stack of the goroutine in which it happened.
func (p *panicked) Error() string { return fmt.Sprintf("%v\n\n%s", p.cause, p.stack) }

func (p *panicked) Unwrap() error {
	err, _ := p.cause.(error)
	return err
}

// call calls what a caller gave. A panic in it stops the job; [job.result] goes on with it.
func (j *job) call(fn func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			p := &panicked{cause, debug.Stack()}
			err = p
			j.mu.Lock()
			defer j.mu.Unlock()
			if j.panicked == nil {
				j.panicked = p
			}
			j.stop()
		}
	}()
	return fn()
}
