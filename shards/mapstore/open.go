package mapstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Options configure a store. The zero value is fine, except that a store of kind file needs a Path.
type Options struct {
	// Path is the path of kiloshard.yaml, the document of a store of kind file.
	Path string

	// Lookup returns the variables in the DSNs of hosts, such as [os.LookupEnv]. Defaults to none being set.
	Lookup func(name string) (value string, ok bool)

	// Credentials returns the credentials for the control database of a store of kind postgres, as for
	// [shards.Host.WithCredentials]; its host is named "store". Defaults to those of the DSN.
	Credentials shards.CredentialsFunc

	// KeepUnset keeps unset variables as they are written, for programs that connect to no host. Otherwise a map with an
	// unset variable is an error, except in [Store.Swap] and [Store.History].
	KeepUnset bool

	// Poll is the interval at which Watch polls, besides notifications. Defaults to 3 seconds, for a file to 1.
	Poll time.Duration

	// Limit is how long a store may take to answer. Defaults to 10 seconds.
	Limit time.Duration

	// Logger logs trouble with the store. Nil logs nothing.
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

// Check returns the error with which Swap would refuse the change from now, which has no map if there is none, in the store
// that a config names. It does not connect to the store.
func Check(cfg shards.Config, opts Options, now Entry, next Change) error {
	_, _, err := opts.documents(cfg).check(now, next)
	return err
}

// Open opens the store that a config names. It needs only the config's Store, the name of its cluster and its directory. It
// does not connect: if the store is down, the first call fails. The store must be closed.
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
