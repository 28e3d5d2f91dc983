package progress

import (
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// pace is how fast work on one host goes.
type pace struct {
	began    time.Time
	finished int
	slowest  shards.Number
	longest  time.Duration
}

// add takes a shard that is finished, and how long its batch took.
func (p *pace) add(n shards.Number, d time.Duration) {
	p.finished++
	if d > p.longest {
		p.slowest, p.longest = n, d
	}
}

// perSecond returns the rate so far, in shards.
func (p *pace) perSecond() float64 {
	return float64(p.finished) / max(time.Since(p.began).Seconds(), 1e-3)
}

// short returns the rate and how long the rest takes, or how long all took.
func (p *pace) short(total int) string {
	if p.finished >= total {
		return fmt.Sprintf("%s, done in %s", p.rate(), time.Since(p.began).Round(time.Second/10))
	}
	return fmt.Sprintf("%s, %s left", p.rate(), p.rest(total).Round(time.Second))
}

// rate returns the rate so far, with a digit more where it is low.
func (p *pace) rate() string {
	if rate := p.perSecond(); rate < 10 {
		return fmt.Sprintf("%.1f/s", rate)
	}
	return fmt.Sprintf("%.0f/s", p.perSecond())
}

// rest returns how long the shards that are not finished will take, at the rate so far.
func (p *pace) rest(total int) time.Duration {
	return time.Duration(float64(total-p.finished) / p.perSecond() * float64(time.Second))
}

// left returns the rate, how long the rest will take, and the slowest shard, with a comma in front.
func (p *pace) left(total int) string {
	if p.finished == 0 {
		return ""
	}
	rest := p.rest(total)
	text := fmt.Sprintf(", %.0f/s", p.perSecond())
	if rest > 0 {
		text += ", " + rest.Round(time.Second).String() + " left"
	}
	return text + fmt.Sprintf(", slowest shard %d in %s", p.slowest, p.longest.Round(time.Millisecond))
}
