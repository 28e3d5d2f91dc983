package prove_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
)

// TestCertificatesAreReadAnew changes the file of the CA under a router that finds its primary among several addresses.
func TestCertificatesAreReadAnew(t *testing.T) {
	t.Parallel()
	server := start(t)
	right, err := localpg.NewAuthority()
	other, failure := localpg.NewAuthority()
	if err := errors.Join(err, failure); err != nil {
		t.Fatal(err)
	}
	if err := server.EnableTLS(t.Context(), right, "localhost"); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	has := func(a *localpg.Authority) {
		t.Helper()
		if err := os.WriteFile(ca, a.PEM, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ip, _, err := net.SplitHostPort(address(t, server))
	if err != nil {
		t.Fatal(err)
	}
	dsn := strings.ReplaceAll(withNobody(t, server), ip+":", "localhost:")
	dsn = strings.Replace(dsn, "sslmode=disable", "sslmode=verify-full&sslrootcert="+ca, 1)
	has(other)
	r := open(t, router.Config{Failover: router.Failover{NoWait: true}}, dsn)
	s := shard(t, r, 1)
	eventually(t, "the server is refused for its certificate", func() bool {
		err := read(t.Context(), s)
		if err == nil {
			t.Fatal("the server's certificate is of another CA")
		}
		return strings.Contains(err.Error(), "x509")
	})
	has(right)
	eventually(t, "the server is trusted", func() bool { return read(t.Context(), s) == nil })
	tx, err := s.Begin(t.Context()) // holds the connection
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	has(other)
	if err := read(t.Context(), s); err == nil || !strings.Contains(err.Error(), "x509") {
		t.Errorf("a new connection to a server of another CA: %v", err)
	}
}
