package mapstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/document"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/etcdstore"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/filestore"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/pgstore"
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

// reader returns the reader of the documents of a config's cluster.
func (o Options) reader(cfg shards.Config) *document.Reader {
	docs := document.NewReader(cfg, o.Lookup)
	if o.KeepUnset {
		return docs.KeepUnset()
	}
	return docs
}

// Open opens the store that a config names. It needs only the config's Store, the name of its cluster and its
// directory. It does not connect: if the store is down, the first call fails. The store must be closed.
func Open(ctx context.Context, cfg shards.Config, opts Options) (Store, error) {
	kind := cfg.Store.Kind
	if opts.Poll <= 0 && (kind == "" || kind == shards.StoreFile) {
		opts.Poll = defaultFilePoll
	}
	opts = opts.withDefaults()
	docs := opts.reader(cfg)
	s, err := openStore(cfg, opts, docs)
	if err != nil {
		return nil, err
	}
	return newMapStore(s, docs, opts.Limit), nil
}

// openStore opens the store of documents that a config names.
func openStore(cfg shards.Config, opts Options, docs *document.Reader) (documentStore, error) {
	switch cfg.Store.Kind {
	case "", shards.StoreFile:
		return filestore.Open(filestore.Config{Path: opts.Path, Docs: docs, Poll: opts.Poll, Limit: opts.Limit, Logger: opts.Logger})
	case shards.StorePostgres:
		return pgstore.Open(pgstore.Config{
			Store: cfg.Store, Cluster: cfg.Cluster, Credentials: opts.Credentials, Poll: opts.Poll, Limit: opts.Limit,
		})
	case shards.StoreEtcd:
		return etcdstore.Open(etcdstore.Config{Config: cfg, Poll: opts.Poll, Limit: opts.Limit, Logger: opts.Logger})
	}
	return nil, &shards.FieldError{Field: "store.kind", Found: fmt.Sprintf("%q", cfg.Store.Kind), Expected: "file, postgres or etcd"}
}
