package mapstore_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// FuzzTrust checks that of a DSN out of a store that is trusted no variable gets anywhere but into the password,
// however pgx reads the DSN, and no setting that the file alone may have.
func FuzzTrust(f *testing.F) {
	for _, seed := range []string{
		"postgres://app:${PG_A_PASSWORD}@10.0.0.1/app", "host=10.0.0.1 user=app password='${PG_A_PASSWORD}'", "postgres://10.0.0.1/app?user=app&password=${PG_A_PASSWORD}&sslmode=require",
		"postgres://app@evil/${AWS_SECRET}", "postgres://app:${P_PASSWORD}@${P_PASSWORD}/", "host=evil application_name=x${P_PASSWORD}", "${P_PASSWORD}", "host=evil ${P_PASSWORD}",
		"postgres://evil/app?%73ervice=photos", "postgres://app:x@y:${P_PASSWORD}@evil/", "password='x ${P_PASSWORD}' host=evil", "password=x\\ ${P_PASSWORD} host=evil", "postgres://a:b?${P_PASSWORD}@c/",
		"password=${P_PASSWORD}' host='evil", "postgres://[::1]:${P_PASSWORD}/", "postgresql://app:${P_PASSWORD}/x@evil/a", "password = ${P_PASSWORD}\thost=evil", "passfile=/x", "A= pAssword='${_PASSWORD}'", "postgres:///?sslcert=/x",
		"postgres://:@${_PASSWORD}@", "host=a\vservice=x", "host=evil pAssword='${_PASSWORD}'", "postgres://app@evil/?Password=${_PASSWORD}", "postgres://app@evil%2Cpg.example.com/", "host=evil\\,pg.example.com",
		"postgres://a/?options=-cx%3Dy", "host=a sEarch_path=x", "postgres://a/?=x", "host=a =x",
	} {
		f.Add(seed)
	}
	variable := regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
	const sentinel = "s3ntinel"
	f.Fuzz(func(t *testing.T, dsn string) {
		if len(dsn) > 2000 || strings.Contains(dsn, sentinel) {
			return
		}
		slow := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("10 s for %q", dsn)) })
		defer slow.Stop()
		c := newChange(1).Config
		c.Hosts = []shards.Host{{Name: "pg-a", DSN: dsn, Weight: 1}}
		if mapstore.CheckTrust(shards.Store{}, c) != nil {
			return
		}
		config, err := pgx.ParseConfig(variable.ReplaceAllString(dsn, sentinel))
		if err != nil {
			return
		}
		all := append([]*pgconn.FallbackConfig{{Host: config.Host}}, config.Fallbacks...)
		if mapstore.CheckTrust(shards.Store{Hosts: []string{"*.example.com"}}, c) == nil {
			for _, to := range all {
				if !strings.HasSuffix(to.Host, ".example.com") {
					t.Errorf("%q: leads to %q", dsn, to.Host)
				}
			}
		}
		for name := range config.RuntimeParams { // Postgres knows them by any case
			if name = strings.ToLower(name); name != "application_name" && !strings.HasSuffix(name, "_timeout") && !strings.HasPrefix(name, "pool_") {
				t.Errorf("%q: sets %q in each session", dsn, name)
			}
		}
		config.Password = ""
		if text := fmt.Sprint(config.Host, config.Port, config.User, config.Database, config.RuntimeParams); strings.Contains(text, sentinel) {
			t.Errorf("%q: a variable is in %s", dsn, text)
		}
		for _, fallback := range config.Fallbacks {
			if strings.Contains(fallback.Host, sentinel) {
				t.Errorf("%q: a variable is in host %s", dsn, fallback.Host)
			}
		}
		if config.RequireAuth != "" {
			t.Errorf("%q: require_auth is %q", dsn, config.RequireAuth)
		}
	})
}
