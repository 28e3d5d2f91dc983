package connect_test

import (
	"errors"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	other, err := localpg.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	ca, wrongCA := file(t, string(authority.PEM)), file(t, string(other.PEM))
	client := func(a *localpg.Authority, user string) (query string) {
		cert, key, err := a.Issue(user)
		if err != nil {
			t.Fatal(err)
		}
		return "&sslcert=" + file(t, string(cert)) + "&sslkey=" + file(t, string(key))
	}
	dsn, without := role(t, server, "tls_user"), role(t, plain, "tls_user")
	byCert, onlyTLS := role(t, server, "by_cert"), role(t, server, "only_tls")
	full := "sslmode=verify-full&sslrootcert="
	tests := []struct {
		name string
		dsn  string
		want []string // in the error; none if it works
	}{
		{"right CA, right name", dsn(sentinel, "localhost", full+ca), nil},
		{"wrong name", dsn(sentinel, "127.0.0.1", full+ca), []string{"127.0.0.1", "tls", "x509: ", "expected the DSN to name the host as the certificate does"}},
		{"wrong name, which verify-ca lets pass", dsn(sentinel, "127.0.0.1", "sslmode=verify-ca&sslrootcert="+ca), nil},
		{"wrong CA", dsn(sentinel, "localhost", full+wrongCA), []string{"localhost", "x509: ", "expected sslrootcert to name the file of the CA"}},
		{"wrong CA, verify-ca", dsn(sentinel, "localhost", "sslmode=verify-ca&sslrootcert="+wrongCA), []string{"x509: ", "expected sslrootcert"}},
		{"no TLS", without(sentinel, "127.0.0.1", full+ca), []string{"127.0.0.1", "server refused TLS connection", "expected ssl = on"}},
		{"no TLS, not asked for", without(sentinel, "127.0.0.1", "sslmode=prefer"), nil},
		{"no such file", dsn(sentinel, "localhost", full+"/nowhere/ca.pem"), []string{"sslrootcert: the file cannot be read: /nowhere/ca.pem: no such file"}},
		{"no PEM", dsn(sentinel, "localhost", full+file(t, sentinel)), []string{"sslrootcert: the file has no certificate in PEM"}},
		{"no such mode", dsn(sentinel, "localhost", "sslmode=full"), []string{"sslmode: expected disable, allow"}},
		{"half a client certificate", dsn(sentinel, "localhost", "sslmode=require&sslcert="+ca+"&sslkey="), []string{"sslcert, sslkey: one of them is missing"}},
		{"client certificate", byCert("", "localhost", full+ca+client(authority, "by_cert")), nil},
		{"no client certificate", byCert("", "localhost", full+ca), []string{"expected a client certificate that the server accepts for this user"}},
		{"another user's client certificate", byCert("", "localhost", full+ca+client(authority, "tls_user")), []string{"expected a client certificate that the server accepts"}},
		{"client certificate of another CA", byCert("", "localhost", full+ca+client(other, "by_cert")), []string{"the server refuses the client's certificate: expected sslcert"}},
		{"without TLS, where the server wants it", onlyTLS(sentinel, "127.0.0.1", "sslmode=disable"), []string{"pg_hba.conf", "expected a line"}},
		{"with TLS, where the server wants it", onlyTLS(sentinel, "localhost", full+ca), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conn, err := connect.Open(t.Context(), hostOf(test.dsn), nil)
			for errors.Is(err, syscall.ECONNRESET) { // the server may be gone before it can be heard why
				conn, err = connect.Open(t.Context(), hostOf(test.dsn), nil)
			}
			if err == nil {
				defer conn.Close(t.Context())
			}
			if test.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *connect.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, expected a connect.Error", err)
			}
			checkText(t, err.Error(), test.want...)
		})
	}
	t.Run("it is encrypted", func(t *testing.T) {
		conn, err := connect.Open(t.Context(), hostOf(dsn(sentinel, "localhost", full+ca)), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var encrypted bool
		err = conn.QueryRow(t.Context(), "select ssl from pg_stat_ssl where pid = pg_backend_pid()").Scan(&encrypted)
		if err != nil || !encrypted {
			t.Errorf("got %v, %v", encrypted, err)
		}
	})
}

// However often pgx tries at an address, and whatever it says of it, the error names it once, and each reason.
func TestErrorsNameAnAddressOnce(t *testing.T) {
	t.Parallel()
	dsn := role(t, plain, "names_once")
	u, err := url.Parse(dsn("", "", ""))
	if err != nil {
		t.Fatal("bad DSN")
	}
	at := u.Host
	for _, test := range []struct{ name, dsn, want string }{
		{"down", "postgres://app@127.0.0.1:1/app", "user app, database app: 127.0.0.1:1: connect: connection refused"},
		{"down, of two", "postgres://app@127.0.0.1:1,127.0.0.1:2/app", "user app, database app: 127.0.0.1:1: connect: connection refused; 127.0.0.1:2: connect: connection refused"},
		{"another name", "postgres://app@localhost:1/app?sslmode=disable", ":1 (localhost): connect: connection refused"},
		{"socket", "host=/nowhere user=app dbname=app", "user app, database app: /nowhere/.s.PGSQL.5432: connect: no such file or directory"},
		{"no such name", "postgres://app@nowhere.invalid/app", "user app, database app: lookup nowhere.invalid"},
		{"refused", dsn("wrong", "", ""), at + ": failed SASL auth: FATAL: password"},
		{"no primary", dsn(sentinel, "", "target_session_attrs=standby"), at + ": ValidateConnect failed: server is not in hot standby mode"},
	} {
		_, err := connect.Open(t.Context(), hostOf(test.dsn), nil)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "expected ssl = on") {
			t.Errorf("%s: got %v, expected %q", test.name, err, test.want)
		}
	}
}

// A pool reads the files of certificates at each connect.
func TestCertificatesAreReadAnew(t *testing.T) {
	t.Parallel()
	ca := file(t, string(authority.PEM))
	dsn := role(t, server, "reads_anew")
	host := hostOf(dsn(sentinel, "localhost", "sslmode=verify-full&sslrootcert="+ca))
	login, pool := poolOf(t, host, nil)
	one := func() error { return acquire(t, login, pool) }
	if err := one(); err != nil {
		t.Fatal(err)
	}
	other, err := localpg.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	write(t, ca, string(other.PEM))
	if err := one(); err == nil {
		t.Error("the CA of the file is another one: expected an error")
	} else {
		checkText(t, err.Error(), "expected sslrootcert to name the file of the CA")
	}
	write(t, ca, "half a fi") // as while somebody copies it: the pool goes on with what was right last
	if err := one(); err != nil {
		t.Error(err)
	}
	write(t, ca, string(authority.PEM))
	if err := one(); err != nil {
		t.Error(err)
	}
	_, _, err = connect.ForPool(shards.Host{DSN: "postgres://app:" + sentinel + "@h:port/app"})
	if !errors.Is(err, shards.ErrBadDSN) {
		t.Errorf("got %v", err)
	}
	checkText(t, err.Error(), shards.ErrBadDSN.Error())
}

// What a DSN says to pools and to pgx does not reach the server.
func TestSettingsOfPools(t *testing.T) {
	t.Parallel()
	dsn := role(t, server, "settings_of_pools")
	host := hostOf(dsn(sentinel, "", "sslmode=disable&pool_max_conns=3&default_query_exec_mode=exec&statement_cache_capacity=7"))
	conn, err := connect.OpenPlain(t.Context(), host, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	full, err := connect.Open(t.Context(), host, func(c *pgx.ConnConfig) { c.RuntimeParams["application_name"] = "mine" })
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close(t.Context())
	var name string
	if err := full.QueryRow(t.Context(), "show application_name").Scan(&name); err != nil || name != "mine" {
		t.Errorf("got %q, %v", name, err)
	}
}
