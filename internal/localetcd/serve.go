package localetcd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// order is what Start writes to the standard input of the process, as one line of JSON.
type order struct {
	Name     string `json:"name"`
	Dir      string `json:"dir"`
	Client   string `json:"client"`              // URL
	Peer     string `json:"peer"`                // URL
	Cluster  string `json:"cluster"`             // name=peer of all members, with commas between them
	TokenTTL uint   `json:"token_ttl,omitempty"` // seconds
	CA       string `json:"ca,omitempty"`
	Cert     string `json:"cert,omitempty"`
	Key      string `json:"key,omitempty"`
}

// answer is what the process writes to its standard output, as one line of JSON, when the server answers or fails.
type answer struct {
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
}

// startLimit limits how long a server may take to answer.
const startLimit = 5 * time.Minute

// Serve is called by the command of [Config], with its standard input and output. It runs the server that [Start]
// requests until its input or ctx ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(in)
	var o order
	if err := decoder.Decode(&o); err != nil {
		return fmt.Errorf("serve etcd: expected an order as JSON: %w", err)
	}
	server, err := o.start(ctx)
	reply := answer{Version: version.Version}
	if err != nil {
		reply = answer{Error: err.Error()}
	}
	if err := errors.Join(err, json.NewEncoder(out).Encode(reply)); err != nil {
		if server != nil {
			server.Close()
		}
		return err
	}
	defer server.Close()
	ended := make(chan struct{})
	go func() { // cannot be interrupted: it ends with the process
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	case err := <-server.Err():
		return fmt.Errorf("serve etcd: %w", err)
	}
	return nil
}

func (o order) start(ctx context.Context) (*embed.Etcd, error) {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = o.Name, o.Dir
	if o.TokenTTL > 0 {
		cfg.AuthTokenTTL = o.TokenTTL
	}
	cfg.BcryptCost = 4 // the minimum: passwords here protect nothing
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	clients, err := url.Parse(o.Client)
	if err != nil {
		return nil, err
	}
	peers, err := url.Parse(o.Peer)
	if err != nil {
		return nil, err
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*clients}, []url.URL{*clients}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peers}, []url.URL{*peers}
	cfg.InitialCluster = o.Cluster
	if o.Cert != "" {
		if _, err := tls.LoadX509KeyPair(o.Cert, o.Key); err != nil { // etcd would report it only later
			return nil, err
		}
		cfg.ClientTLSInfo.CertFile, cfg.ClientTLSInfo.KeyFile = o.Cert, o.Key
		cfg.ClientTLSInfo.TrustedCAFile, cfg.ClientTLSInfo.ClientCertAuth = o.CA, o.CA != ""
	}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err = <-server.Err():
	case <-limited.Done():
		err = fmt.Errorf("no answer within %s", startLimit)
	}
	server.Close()
	return nil, err
}
