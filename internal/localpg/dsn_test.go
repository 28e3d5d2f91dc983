package localpg_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

func TestAsRole(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://app:first@127.0.0.1:1/photos?sslmode=disable",
		"postgres://127.0.0.1:1/photos?user=app&password=first&sslmode=disable",
		"host=127.0.0.1 port=1 dbname=photos user=app password=first sslmode=disable",
	} {
		config, err := pgx.ParseConfig(localpg.AsRole(dsn, "o'brien", `se\cr et`))
		noError(t, err)
		equal(t, "role", config.User, "o'brien")
		equal(t, "password", config.Password, `se\cr et`)
		equal(t, "database", config.Database, "photos")
	}
}
