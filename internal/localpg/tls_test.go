package localpg_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	server := start(t, localpg.Config{})
	authority, err := localpg.NewAuthority()
	noError(t, err)
	noError(t, server.EnableTLS(t.Context(), authority, "localhost"))
	noError(t, server.AllowFirst(t.Context(), "hostssl all by_cert all cert\nhost all by_cert all reject"))
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		noError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	cert, key, err := authority.Issue("by_cert")
	noError(t, err)
	exec(t, server.DSN("postgres"), "create role by_cert login")
	u, err := url.Parse(server.DSN("postgres"))
	noError(t, err)
	u.Host = "localhost:" + u.Port()
	u.RawQuery = "sslmode=verify-full&sslrootcert=" + write("ca.pem", authority.PEM)
	equal(t, "encrypted", ask[bool](t, u.String(), "select ssl from pg_stat_ssl where pid = pg_backend_pid()"), true)
	u.User = url.User("by_cert")
	_, err = pgx.Connect(t.Context(), u.String())
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without a certificate: got %v", err)
	}
	u.RawQuery += "&sslcert=" + write("crt", cert) + "&sslkey=" + write("key", key)
	equal(t, "user", ask[string](t, u.String(), "select current_user::text"), "by_cert")

	given := start(t, localpg.Config{DSN: server.DSN("postgres")})
	for _, err := range []error{given.EnableTLS(t.Context(), authority, "localhost"), given.AllowFirst(t.Context(), "")} {
		equal(t, "a server that is not ours", errors.Is(err, errors.ErrUnsupported), true)
	}
}
