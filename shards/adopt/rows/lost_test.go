package rows_test

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
)

const diskFull = "53100"

// settle finds out whether a transaction was committed whose connection was lost: the server has all of its rows, or none.
func (c *client) settle(next history, added [4]int64) error {
	c.maybe.Add(1)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	_ = c.conn.Close(ctx) // after a PANIC it is still open
	for {
		found, err := c.readAgain(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			time.Sleep(10 * time.Millisecond)
			continue
		case err != nil:
			return err
		case unlike(found, next.rows()) == "":
			c.committed(next, added)
		case unlike(found, c.history.rows()) != "":
			return fmt.Errorf("a transaction whose connection was lost is neither there, %s, nor undone, %s", unlike(found, next.rows()), unlike(found, c.history.rows()))
		}
		return nil
	}
}

func (c *client) readAgain(ctx context.Context) (map[string][]string, error) {
	conn, err := pgtest.Open(ctx, c.b.host.ConnString())
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	return c.read(ctx, conn, c.b.m.Schema(c.shards))
}
