package mapstore_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/kiloshard/kiloshard/internal/localetcd"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

const etcdPassword = "correct horse/battery"

// TestEtcdTLSAndUser has an etcd that requires client certificates and a user. A config names their files relative to
// its own.
func TestEtcdTLSAndUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := newAuthority(t, dir, "ca")
	authority.issue(t, "server")
	authority.issue(t, "client")
	newAuthority(t, dir, "other").issue(t, "stranger")
	path := func(name string) string { return filepath.Join(dir, name) }
	server := startEtcd(t, localetcd.Config{CA: path("ca.pem"), Cert: path("server.pem"), Key: path("server.key")})
	addUserTLS(t, server, path)

	config := func(t *testing.T, store string) shards.Config {
		t.Helper()
		text := "cluster: photos\nstore: {kind: etcd, endpoints: [\"" + server.Endpoint() + "\"], " + store + "}\n"
		file, err := os.CreateTemp(dir, "*.yaml")
		noError(t, err)
		_, err = file.WriteString(text)
		noError(t, errors.Join(err, file.Close()))
		cfg, err := shards.Load(file.Name(), func(string) (string, bool) { return etcdPassword, true })
		noError(t, err)
		return cfg
	}
	const user, client = `user: kiloshard, password: "${P}"`, "ca: ca.pem, cert: client.pem, key: client.key"

	store := open(t, config(t, client+", "+user))
	w := watch(t, store, 0)
	swap(t, store, 0, 1)
	checkEntry(t, w.entry(t), 1, 1)
	// The token is the server's, and gone with it.
	noError(t, server.Kill(t.Context()))
	noError(t, server.Restart(newContext(t)))
	swap(t, store, 1, 2)
	checkEntry(t, w.entry(t), 2, 2)
	swap(t, store, 2, 3)
	checkEntry(t, w.entry(t), 3, 3)
	checkEntry(t, load(t, store), 3, 3)

	for name, store := range map[string]string{
		"no such file": "ca: nothing.pem", "no certificate in it": "ca: client.key", "not a pair": "cert: client.pem, key: server.key",
	} {
		if _, err := mapstore.Open(t.Context(), config(t, store), mapstore.Options{}); err == nil || !strings.Contains(err.Error(), "etcd: c") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, test := range map[string]struct{ store, want string }{
		"no user":         {client, "permission denied"},
		"wrong password":  {client + ", user: kiloshard, password: s3cret", "authentication failed"},
		"no rights":       {client + ", prefix: /other/, " + user, "permission denied"},
		"no certificate":  {"ca: ca.pem, " + user, "certificate required"},
		"other authority": {"ca: ca.pem, cert: stranger.pem, key: stranger.key, " + user, "unknown certificate authority"},
		"other server":    {"ca: other.pem, cert: client.pem, key: client.key, " + user, "certificate signed by unknown authority"},
		"system's CAs":    {"cert: client.pem, key: client.key, " + user, "certificate signed by unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t, config(t, test.store), func(o *mapstore.Options) { o.Limit = 3 * time.Second })
			ctx := newContext(t)
			for { // while the machine is busy, time may be up before etcd has said why
				_, err := store.Load(ctx)
				if err == nil || errors.Is(err, mapstore.ErrNoMap) {
					t.Fatalf("got %v, want %q", err, test.want)
				}
				for _, secret := range []string{"s3cret", etcdPassword} {
					if strings.Contains(err.Error(), secret) {
						t.Fatalf("the error shows the password: %v", err)
					}
				}
				if strings.Contains(err.Error(), test.want) {
					return
				}
				if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("got %v, want %q in it", err, test.want)
				}
			}
		})
	}
}

// TestEtcdReloads changes certificates and the password: each connect reads the certificates, and each login the
// password, which may change in its file before it changes in etcd.
func TestEtcdReloads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := newAuthority(t, dir, "ca")
	authority.issue(t, "server")
	authority.issue(t, "client")
	newAuthority(t, dir, "other")
	path := func(name string) string { return filepath.Join(dir, name) }
	server := startEtcd(t, localetcd.Config{CA: path("ca.pem"), Cert: path("server.pem"), Key: path("server.key")})
	admin := addUserTLS(t, server, path)
	right, err := os.ReadFile(path("ca.pem"))
	noError(t, err)
	other, err := os.ReadFile(path("other.pem"))
	noError(t, err)
	trust := func(text []byte) { noError(t, os.WriteFile(path("trusted.pem"), text, 0o600)) }
	trust(right)
	noError(t, os.WriteFile(path("k.yaml"), []byte("cluster: photos\nstore: {kind: etcd, endpoints: [\""+server.Endpoint()+
		"\"], ca: trusted.pem, cert: client.pem, key: client.key, user: kiloshard, password: \"${P}\"}\n"), 0o600))
	var password atomic.Value
	password.Store(etcdPassword)
	cfg, err := shards.Load(path("k.yaml"), func(string) (string, bool) { return password.Load().(string), true })
	noError(t, err)
	restart := func() { // etcd loses all tokens and connections
		t.Helper()
		noError(t, server.Kill(t.Context()))
		noError(t, server.Restart(newContext(t)))
	}
	store := open(t, cfg)
	swap(t, store, 0, 1)

	password.Store("n3xt-" + etcdPassword)
	restart()
	checkEntry(t, load(t, store), 1, 1)
	_, err = admin.UserChangePassword(newContext(t), "kiloshard", "n3xt-"+etcdPassword)
	noError(t, err)
	checkEntry(t, load(t, store), 1, 1)
	restart()
	swap(t, store, 1, 2)

	noError(t, server.Kill(t.Context()))
	trust(other)
	noError(t, server.Restart(newContext(t)))
	eventually(t, "the other CA to count", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the client tries again until it ends
		defer cancel()
		_, err := store.Load(ctx)
		return err != nil && strings.Contains(err.Error(), "certificate signed by unknown authority")
	})
	trust(right)
	eventually(t, "the right CA to count", func() bool {
		_, err := store.Load(newContext(t))
		return err == nil
	})
	trust(right[:len(right)/2]) // as in the middle of a copy: the last good one stays in use
	restart()
	checkEntry(t, load(t, store), 2, 2)
}

func TestEtcdEndpoints(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]shards.Store{
		"none":              {},
		"user":              {Endpoints: []string{"http://kiloshard:s3cret@127.0.0.1:2379"}},
		"both schemes":      {Endpoints: []string{"https://127.0.0.1:2379", "http://127.0.0.2:2379"}},
		"another scheme":    {Endpoints: []string{"unix://s3cret"}},
		"no host":           {Endpoints: []string{"http://:2379"}},
		"a path":            {Endpoints: []string{"http://127.0.0.1/s3cret"}},
		"TLS for http only": {Endpoints: []string{"http://127.0.0.1:2379"}, CA: "ca.pem"},
	} {
		store.Kind = shards.StoreEtcd
		_, err := mapstore.Open(t.Context(), shards.Config{Cluster: cluster, Store: store}, mapstore.Options{})
		if field := checkAs[*shards.FieldError](t, err); !strings.HasPrefix(field.Field, "store.endpoints") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// addUserTLS is addUser for a server that requires a certificate. It returns a client of root.
func addUserTLS(t *testing.T, server *localetcd.Server, path func(string) string) *clientv3.Client {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(path("client.pem"), path("client.key"))
	noError(t, err)
	text, err := os.ReadFile(path("ca.pem"))
	noError(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	config := clientv3.Config{
		Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop(), TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool},
	}
	client, err := clientv3.New(config)
	noError(t, err)
	defer client.Close()
	addUser(t, client)
	config.Username, config.Password = "root", "root"
	admin, err := clientv3.New(config)
	noError(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}

// addUser turns on authentication, with a user for the keys under /kiloshard/photos/.
func addUser(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx := newContext(t)
	_, err := client.UserAdd(ctx, "root", "root")
	noError(t, err)
	_, err = client.UserGrantRole(ctx, "root", "root")
	noError(t, err)
	_, err = client.RoleAdd(ctx, "photos")
	noError(t, err)
	const prefix = "/kiloshard/photos/"
	_, err = client.RoleGrantPermission(ctx, "photos", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))
	noError(t, err)
	_, err = client.UserAdd(ctx, "kiloshard", etcdPassword)
	noError(t, err)
	_, err = client.UserGrantRole(ctx, "kiloshard", "photos")
	noError(t, err)
	_, err = client.AuthEnable(ctx)
	noError(t, err)
}

// authority signs certificates, which lie in files of a directory.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{dir: dir}
	a.cert, a.key = a.make(t, name, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// issue makes a certificate for servers and clients on this machine.
func (a *authority) issue(t *testing.T, name string) {
	t.Helper()
	a.make(t, name, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) make(t *testing.T, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	noError(t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	noError(t, err)
	cert, err := x509.ParseCertificate(der)
	noError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	noError(t, err)
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		noError(t, os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}
