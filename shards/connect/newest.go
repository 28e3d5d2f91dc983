package connect

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/serverrole"
	"github.com/kiloshard/kiloshard/shards"
)

// settleTime is how long a host's other addresses have to answer once one has, at least.
const settleTime = time.Second

// session is a [pgx.Conn] or a [pgconn.PgConn].
type session interface {
	comparable
	Close(ctx context.Context) error
}

// opened is the result of opening a session at one address.
type opened[S session] struct {
	place   int // of the address in the DSN
	at      address
	session S
	role    serverrole.Role // of one of several
	err     error
}

// openNewest opens a session at each address of a host side by side, and keeps that to the primary that was promoted last, or if there is no
// primary the first of the DSN. An address that does not answer holds up the others for a second, or twice as long as the first answer took.
func openNewest[S session](ctx context.Context, host shards.Host, open func(context.Context, shards.Host) (S, error), raw func(S) *pgconn.PgConn) (best opened[S], err error) {
	var none S
	config, err := parse(host)
	if err != nil {
		return best, err
	}
	all := addressesOf(&config.ConnConfig.Config)
	if len(all) == 1 {
		best.at = all[0]
		best.session, err = open(ctx, host)
		return best, err
	}
	began := time.Now()
	opening, cancel := context.WithCancel(ctx)
	results := make(chan opened[S], len(all))
	for i, a := range all {
		go func() {
			o := opened[S]{place: i, at: a}
			if o.session, o.err = open(opening, At(host, a.host, a.port)); o.err == nil {
				if o.role, o.err = serverrole.Read(opening, raw(o.session)); o.err != nil {
					o.end(ctx)
				}
			}
			results <- o
		}()
	}
	failed := make([]error, len(all))
	var settled <-chan time.Time
	waiting := len(all)
	for ; waiting > 0; waiting-- {
		select {
		case o := <-results:
			switch {
			case o.err != nil:
				failed[o.place] = o.err
				continue
			case best.session == none:
				best = o
			case o.role.Newer(best.role) || !best.role.Newer(o.role) && o.place < best.place:
				best.end(ctx)
				best = o
			default:
				o.end(ctx)
			}
			if settled == nil {
				settled = time.After(max(settleTime, 2*time.Since(began)))
			}
			continue
		case <-settled:
		case <-ctx.Done():
		}
		break
	}
	cancel()
	go func() { // those that come too late
		for ; waiting > 0; waiting-- {
			if o := <-results; o.err == nil {
				o.end(ctx)
			}
		}
	}()
	switch {
	case ctx.Err() != nil:
		best.end(ctx)
		return opened[S]{}, ctx.Err()
	case best.session != none:
		return best, nil
	}
	return opened[S]{}, joined(host, &config.ConnConfig.Config, failed)
}

// newestOf returns the address that [Open] leads to, and the role of its server. It closes the sessions, which have the settings of the DSN alone:
// poolers, where the map store may be, refuse most others.
func newestOf(ctx context.Context, host shards.Host) (opened[*pgconn.PgConn], error) {
	best, err := openNewest(ctx, host, openBare, itself)
	best.end(ctx)
	return best, err
}

func itself(conn *pgconn.PgConn) *pgconn.PgConn { return conn }

// end closes the session, if there is one.
func (o opened[S]) end(ctx context.Context) {
	var none S
	if o.session == none {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = o.session.Close(ctx)
}

// joined makes one error of those of all addresses. One that is not about connecting, such as an [IdentityError], counts alone.
func joined(host shards.Host, config *pgconn.Config, errs []error) error {
	var whole Error
	var texts, advice []string
	add := func(text string) {
		if text != "" && !strings.Contains(strings.Join(advice, "; "), text) {
			advice = append(advice, text)
		}
	}
	byDefault, _ := hasDefaultMode(host, config)
	for _, err := range errs {
		var e *Error
		if !errors.As(err, &e) || e.who == "" {
			return err
		}
		whole.who, whole.Err, whole.pooler = e.who, errors.Join(whole.Err, e.Err), whole.pooler || e.pooler
		texts = append(texts, e.why)
		add(e.advice)
		if byDefault && failedTLS(e.Err) {
			add(otherModes) // an address on this machine has the mode by the others
		}
	}
	whole.why, whole.advice = strings.Join(texts, "; "), strings.Join(advice, "; ")
	whole.text = whole.compose()
	return &whole
}
