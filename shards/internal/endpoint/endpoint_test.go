package endpoint_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/shards/internal/endpoint"
)

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url                  string
		valid, tls, loopback bool
	}{
		{"https://10.0.0.9:2379", true, true, false},
		{"http://localhost:2379", true, false, true},
		{"http://127.0.0.1", true, false, true},
		{"http://[::1]:2379", true, false, true},
		{"https://etcd.example.com", true, true, false},
		{"https://root:secret@10.0.0.9:2379", false, true, false},
		{"https://10.0.0.9:2379/v3", false, true, false},
		{"10.0.0.9:2379", false, false, false},
		{"", false, false, false},
	} {
		if valid, tls, loopback := endpoint.Valid(c.url), endpoint.UsesTLS(c.url), endpoint.Loopback(c.url); valid != c.valid || tls != c.tls || loopback != c.loopback {
			t.Errorf("%q: got valid %t, TLS %t, loopback %t; expected %t, %t, %t", c.url, valid, tls, loopback, c.valid, c.tls, c.loopback)
		}
	}
}
