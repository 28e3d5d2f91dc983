package etcdstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/credentials"

	"github.com/kiloshard/kiloshard/shards"
)

// parseEndpoints returns the endpoints as URLs with a port, all with the same scheme. An endpoint without a scheme uses
// TLS if others do, or if there are certificates. Errors do not show an endpoint, which may hold a password.
func parseEndpoints(store shards.Store) ([]string, error) {
	const field, expected = "store.endpoints", "URLs such as https://10.0.0.9:2379, without a user or a password"
	if len(store.Endpoints) == 0 {
		return nil, &shards.FieldError{Field: field, Found: "none", Expected: expected}
	}
	scheme := "http"
	if store.CA != "" || store.Cert != "" || slices.ContainsFunc(store.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https://") }) {
		scheme = "https"
	}
	var endpoints []string
	for i, text := range store.Endpoints {
		at := fmt.Sprintf("%s[%d]", field, i)
		if !strings.Contains(text, "://") {
			text = scheme + "://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
			return nil, &shards.FieldError{Field: at, Found: "something else", Expected: expected}
		}
		if u.Scheme != scheme {
			return nil, &shards.FieldError{Field: at, Found: "one without TLS", Expected: "https://, as others, or because there are certificates"}
		}
		port := u.Port()
		if port == "" {
			port = "2379"
		}
		endpoints = append(endpoints, scheme+"://"+net.JoinHostPort(u.Hostname(), port))
	}
	return endpoints, nil
}

// loadTLS reads the files of certificates, whose names may be relative to the config's file. It returns nil if the
// endpoints are http.
func loadTLS(cfg shards.Config, endpoints []string) (*tls.Config, error) {
	store := cfg.Store
	if !strings.HasPrefix(endpoints[0], "https:") {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if store.CA != "" {
		path := cfg.Path(store.CA)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("etcd: ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("etcd: ca: %s: no certificate in it; expected PEM", path)
		}
	}
	if store.Cert != "" {
		pair, err := tls.LoadX509KeyPair(cfg.Path(store.Cert), cfg.Path(store.Key))
		if err != nil {
			return nil, fmt.Errorf("etcd: cert and key: %w", err)
		}
		// Sent whichever CAs the server requests: its error says best what is wrong with the certificate.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return config, nil
}

// freshTLS reads the files of certificates for each connection, since they are renewed while programs run. If they
// cannot be read, it uses the last good ones.
type freshTLS struct {
	credentials.TransportCredentials
	read func() (*tls.Config, error)
	last *atomic.Pointer[tls.Config]
}

func newFreshTLS(first *tls.Config, read func() (*tls.Config, error)) freshTLS {
	f := freshTLS{credentials.NewTLS(first), read, new(atomic.Pointer[tls.Config])}
	f.last.Store(first)
	return f
}

// ClientHandshake is called by gRPC for a new connection.
func (f freshTLS) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if config, err := f.read(); err == nil {
		f.last.Store(config)
	}
	return credentials.NewTLS(f.last.Load()).ClientHandshake(ctx, authority, raw)
}

// Clone is called by gRPC for copies.
func (f freshTLS) Clone() credentials.TransportCredentials { return f }
