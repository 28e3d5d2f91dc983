package routes

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestPoolDSN(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://ann:s%2Fx@db:5433/app?sslmode=disable&application_name=me",
		"host=db port=5433 user=ann password=s/x dbname=app application_name=me",
	} {
		cfg, err := pgxpool.ParseConfig(poolDSN(dsn, "it's us", behindPgBouncer()))
		if err != nil {
			t.Fatal(err)
		}
		c := cfg.ConnConfig
		if c.Host != "db" || c.Port != 5433 || c.Password != "s/x" || c.RuntimeParams["application_name"] != "it's us" {
			t.Errorf("%s: host %s, port %d, application %q", dsn, c.Host, c.Port, c.RuntimeParams["application_name"])
		}
		if mode := c.DefaultQueryExecMode.String(); cfg.MaxConns != connsPerHost || mode != "exec" {
			t.Errorf("%s: %d connections, mode %s", dsn, cfg.MaxConns, mode)
		}
	}
}
