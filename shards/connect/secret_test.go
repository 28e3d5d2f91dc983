package connect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// However a host refuses or misbehaves, and wherever the password comes from, nobody sees it.
func TestPasswordsAreNeverShown(t *testing.T) {
	t.Parallel()
	role(t, server, "never_shown")
	real, err := url.Parse(server.DSN("postgres"))
	if err != nil {
		t.Fatal("bad DSN")
	}
	servers := []struct{ name, address, want string }{
		{"refuses", real.Host, "SQLSTATE 28P01"},
		{"down", "127.0.0.1:1", "connect"},
		{"garbage", listen(t, garbage), ""},
		{"echo", listen(t, echo), ""},
		{"sends the password back", listen(t, sendBack), "you sent ********"},
		{"bad port", "127.0.0.1:port", "dsn: "},
	}
	const wrong = sentinel + "-wrong"
	ways := []struct {
		name string
		host func(address string) shards.Host
	}{
		{"DSN", func(address string) shards.Host {
			return hostOf("postgres://never_shown:" + wrong + "@" + address + "/postgres?sslmode=disable&require_auth=password,md5,scram-sha-256")
		}},
		{"keywords and values", func(address string) shards.Host {
			host, port, _ := strings.Cut(address, ":")
			return hostOf("host=" + host + " port=" + port + " user=never_shown dbname=postgres sslmode=disable require_auth=password,md5,scram-sha-256 password='" + wrong + "'")
		}},
		{"parameter", func(address string) shards.Host {
			return hostOf("postgres://never_shown@" + address + "/postgres?sslmode=disable&require_auth=password,md5,scram-sha-256&password=" + wrong)
		}},
		{"variable", func(address string) shards.Host {
			yaml := "cluster: photos\nshards: 1\nepoch: 2026-01-01\nhosts: [{name: pg-a, dsn: \"postgres://never_shown:${SECRET}@" + address + "/postgres?sslmode=disable&require_auth=password,md5,scram-sha-256\"}]\nplacement: [{shards: 0, host: pg-a}]\n"
			c, err := shards.Parse("k.yaml", []byte(yaml), func(string) (string, bool) { return wrong, true })
			if err != nil {
				t.Fatal(err)
			}
			return c.Hosts[0]
		}},
		{"passfile", func(address string) shards.Host {
			return hostOf("postgres://never_shown@" + address + "/postgres?sslmode=disable&require_auth=password,md5,scram-sha-256&passfile=" + file(t, "*:*:*:*:"+wrong))
		}},
		{"function", func(address string) shards.Host {
			return hostOf("postgres://never_shown@" + address + "/postgres?sslmode=disable&require_auth=password,md5,scram-sha-256").WithCredentials(
				func(context.Context, shards.Host) (shards.Credentials, error) {
					return shards.Credentials{Password: wrong}, nil
				})
		}},
	}
	for _, s := range servers {
		for _, way := range ways {
			t.Run(s.name+", "+way.name, func(t *testing.T) {
				host := way.host(s.address)
				_, err := connect.Open(t.Context(), host, nil)
				look(t, s.want, err, host)
				_, err = connect.OpenPlain(t.Context(), host, nil)
				look(t, s.want, err, host)
				login, config, err := connect.ForPool(host)
				if err != nil {
					look(t, s.want, err, host)
					return
				}
				look(t, "", nil, host, login)
				login.Attend(config)
				c, err := pgx.ParseConfig(host.ConnString())
				if err != nil {
					t.Fatal("bad DSN")
				}
				c.Password = wrong
				err = login.Try(t.Context(), func(ctx context.Context) error {
					_, err := pgx.ConnectConfig(ctx, c)
					return err
				})
				look(t, s.want, err, host, login)
			})
		}
	}
}

// look looks for the password in whatever can be made of an error and of values.
func look(t *testing.T, want string, err error, values ...any) {
	t.Helper()
	if err != nil {
		checkText(t, err.Error(), want)
		values = append(values, err, &shards.HostError{Host: "pg-a", Err: err}, struct{ Err error }{err})
	} else if want != "" {
		t.Error("expected an error")
	}
	var log bytes.Buffer
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			checkText(t, fmt.Sprintf(verb, value))
		}
		text, _ := json.Marshal(value) // funcs cannot be marshalled
		checkText(t, string(text))
		slog.New(slog.NewTextHandler(&log, nil)).Info("here", "value", value)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("here", "value", value)
	}
	checkText(t, log.String())
	for e := err; e != nil; e = errors.Unwrap(e) {
		var deep strings.Builder
		dump(&deep, reflect.ValueOf(e), 6)
		checkText(t, deep.String())
	}
}

// dump writes down all texts that a value leads to, as a debugger would.
func dump(to *strings.Builder, v reflect.Value, depth int) {
	if depth == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		to.WriteString(v.String() + "\n")
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			dump(to, v.Elem(), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			dump(to, v.Field(i), depth-1)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			dump(to, v.Index(i), depth-1)
		}
	}
}

// listen runs a server that is none, and returns its address.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func garbage(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1024))
	_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
}

func echo(conn net.Conn) {
	buf := make([]byte, 1024)
	n, _ := conn.Read(buf)
	_, _ = conn.Write(buf[:n])
}

// sendBack asks for a password in the clear and says it in its error.
func sendBack(conn net.Conn) {
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationCleartextPassword{})
	if b.Flush() != nil {
		return
	}
	message, err := b.Receive()
	if p, ok := message.(*pgproto3.PasswordMessage); ok && err == nil {
		text := "you sent " + p.Password
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: text, Detail: text, Hint: text})
		_ = b.Flush()
	}
}
