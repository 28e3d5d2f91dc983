package connect_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// What is made for one address is sent to no other: each of two servers that ask for the password itself is given its own,
// and the one of a pair that has none is given none.
func TestEachAddressHasItsOwnPassword(t *testing.T) {
	t.Parallel()
	ways := []struct {
		name string
		open func(ctx context.Context, host shards.Host) error
	}{
		{"Open", func(ctx context.Context, host shards.Host) error { _, err := connect.Open(ctx, host, nil); return err }},
		{"OpenPlain", func(ctx context.Context, host shards.Host) error {
			_, err := connect.OpenPlain(ctx, host, nil)
			return err
		}},
		{"pool", func(ctx context.Context, host shards.Host) error {
			login, config, err := connect.ForPool(host)
			if err != nil {
				return err
			}
			login.Attend(config)
			pool, err := pgxpool.NewWithConfig(ctx, config)
			if err != nil {
				return err
			}
			defer pool.Close()
			return login.Try(ctx, func(ctx context.Context) error { return pool.Ping(ctx) })
		}},
	}
	sources := []struct {
		name string
		host func(first, second string) shards.Host
		want [2]string // in what the servers are sent
	}{
		{"function", func(first, second string) shards.Host {
			return hostOf(dsnOf(first, second)).WithCredentials(madeFor)
		}, [2]string{"token-for-first", "token-for-second"}},
		{"passfile", func(first, second string) shards.Host {
			path := file(t, passLine(first)+":token-for-first\n"+passLine(second)+":token-for-second\n")
			return hostOf(dsnOf(first, second) + "&passfile=" + path)
		}, [2]string{"token-for-first", "token-for-second"}},
		{"passfile, first alone", func(first, second string) shards.Host {
			return hostOf(dsnOf(first, second) + "&passfile=" + file(t, passLine(first)+":token-for-first\n"))
		}, [2]string{"token-for-first", ""}},
		{"service", func(first, second string) shards.Host {
			host, port, _ := strings.Cut(first, ":")
			path := file(t, fmt.Sprintf("[photos]\nhost=%s\nport=%s\npassword=token-for-first\n", host, port))
			local := shards.Config{Store: shards.Store{Kind: shards.StorePostgres, Local: map[string]string{"service": "photos", "servicefile": path}}}
			return shards.Config{Hosts: []shards.Host{hostOf(dsnOf(first, second))}}.WithLocal(local).Hosts[0]
		}, [2]string{"token-for-first", ""}},
	}
	for _, source := range sources {
		for _, way := range ways {
			t.Run(source.name+", "+way.name, func(t *testing.T) {
				t.Parallel()
				first, second := startAsker(t), startAsker(t)
				one, other := first.Addr().String(), second.Addr().String()
				names.Store(one, "first")
				names.Store(other, "second")
				if err := way.open(t.Context(), source.host(one, other)); err == nil {
					t.Fatal("expected an error")
				} else {
					for _, token := range []string{"token-for-first", "token-for-second"} {
						if strings.Contains(err.Error(), token) {
							t.Errorf("the password is in: %v", err)
						}
					}
				}
				for i, a := range []*asker{first, second} {
					select {
					case got := <-a.sent:
						got = strings.Trim(got, "\x00")
						if want := source.want[i]; !strings.HasSuffix(got, want) || want == "" && strings.Contains(got, "token") {
							t.Errorf("server %d was sent %q, expected %q", i, got, want)
						}
					case <-time.After(30 * time.Second):
						t.Errorf("server %d was not asked", i)
					}
				}
			})
		}
	}
}

// An attempt that is made for one address alone gets what is for that one, though the DSN begins with another.
func TestAdjustedAddressHasItsOwnPassword(t *testing.T) {
	t.Parallel()
	first, second := startAsker(t), startAsker(t)
	one, other := first.Addr().String(), second.Addr().String()
	names.Store(one, "first")
	names.Store(other, "second")
	host := hostOf(dsnOf(one, other)).WithCredentials(madeFor)
	login, config, err := connect.ForPool(host)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Host, config.ConnConfig.Port, config.ConnConfig.Fallbacks = config.ConnConfig.Fallbacks[0].Host, config.ConnConfig.Fallbacks[0].Port, nil
	login.Attend(config)
	if _, err := login.Open(t.Context(), config); err == nil {
		t.Error("expected an error")
	}
	select {
	case got := <-second.sent:
		if !strings.Contains(got, "token-for-second") {
			t.Errorf("it was sent %q", got)
		}
	case <-time.After(30 * time.Second):
		t.Error("it was not asked")
	}
}

var names sync.Map // of servers, by their addresses

// madeFor returns a token for the one address that the host names.
func madeFor(_ context.Context, host shards.Host) (shards.Credentials, error) {
	config, err := pgxpool.ParseConfig(host.ConnString())
	if err != nil || len(config.ConnConfig.Fallbacks) > 0 {
		return shards.Credentials{}, fmt.Errorf("a DSN with several addresses: %w", err)
	}
	name, _ := names.Load(net.JoinHostPort(config.ConnConfig.Host, fmt.Sprint(config.ConnConfig.Port)))
	return shards.Credentials{Password: fmt.Sprintf("token-for-%s", name)}, nil
}

func dsnOf(first, second string) string {
	return fmt.Sprintf("postgres://app@%s,%s/app?sslmode=disable&require_auth=password", first, second)
}

func passLine(address string) string { return address + ":app:app" }

// A credential that is missing is said to be missing, for a DSN of one address and of several: it says nothing of the servers.
func TestNoCredentials(t *testing.T) {
	t.Parallel()
	first, second := startAsker(t), startAsker(t)
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, dsn := range []string{dsnOf(first.Addr().String(), second.Addr().String()), "postgres://app@" + first.Addr().String() + "/app?sslmode=disable"} {
		host := hostOf(dsn).WithCredentials(func(context.Context, shards.Host) (shards.Credentials, error) { return shards.Credentials{}, refused })
		_, err := connect.Open(t.Context(), host, nil)
		var own *connect.Error
		if !errors.As(err, &own) || !errors.Is(err, shards.ErrNoCredentials) || !strings.Contains(err.Error(), "no credentials: dial tcp: connection refused") {
			t.Errorf("got %v", err)
		}
	}
}
