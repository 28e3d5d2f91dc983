package mapstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Options say how a store is used. Its zero value will do, except that a file must be named.
type Options struct {
	// Path is that of kiloshard.yaml, the document of a store of kind file.
	Path string

	// Lookup knows the variables in the DSNs of hosts, such as [os.LookupEnv]. Defaults to knowing none.
	Lookup func(name string) (value string, ok bool)

	// Credentials says who logs in on the control database of a store of kind postgres, as [shards.Host.WithCredentials]
	// does; the host that it is asked for is called "store". Defaults to what the DSN says.
	Credentials shards.CredentialsFunc

	// KeepUnset leaves variables that are not set as they are written, for programs that connect to no host. Else a map
	// with such a variable is an error, save for [Store.Swap] and [Store.History].
	KeepUnset bool

	// Poll is the interval at which Watch looks by itself, besides notifications. Defaults to 3 seconds, of a file to 1.
	Poll time.Duration

	// Limit is the most that a store may take to answer. Defaults to 10 seconds.
	Limit time.Duration

	// Logger defaults to silence.
	Logger *slog.Logger
}

const (
	defaultPoll     = 3 * time.Second
	defaultFilePoll = time.Second
	defaultLimit    = 10 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// documents returns how the maps of a config's cluster are read.
func (o Options) documents(cfg shards.Config) documents {
	d := documents{bad: &refusals{}, local: cfg, lookup: o.Lookup, shared: cfg.Store.Kind != "" && cfg.Store.Kind != shards.StoreFile}
	if o.KeepUnset {
		d = d.keepUnset()
	}
	return d
}

// Check reports whether Swap would refuse to make a change of now, which has no map if there is none, in the store that a
// config names. It asks no store.
func Check(cfg shards.Config, opts Options, now Entry, next Change) error {
	_, _, err := opts.documents(cfg).check(now, next)
	return err
}

// Open opens the store that a config names, and asks for no more of the config than its Store, its cluster's name and
// its directory. It connects to nobody: that the store is down the first call tells. The store must be closed.
func Open(ctx context.Context, cfg shards.Config, opts Options) (Store, error) {
	switch cfg.Store.Kind {
	case "", shards.StoreFile:
		if opts.Poll <= 0 {
			opts.Poll = defaultFilePoll
		}
		return openFile(cfg, opts.withDefaults())
	case shards.StorePostgres:
		return openPostgres(cfg, opts.withDefaults())
	case shards.StoreEtcd:
		return openEtcd(ctx, cfg, opts.withDefaults())
	}
	return nil, &shards.FieldError{Field: "store.kind", Found: fmt.Sprintf("%q", cfg.Store.Kind), Expected: "file, postgres or etcd"}
}
