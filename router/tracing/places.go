package tracing

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/kiloshard/kiloshard/router/operation"
	"github.com/kiloshard/kiloshard/shards"
)

// places cache the attributes of each shard, because they are the same each time. A shard that has moved, or that belongs to
// another router, replaces the entry with its number.
type places struct {
	known atomic.Pointer[[]atomic.Pointer[place]] // by shard number

	mu    sync.Mutex // held to replace known, and guards the fields below
	hosts map[string]address
}

// address is the address in the DSN of a host.
type address struct {
	dsn      string
	database string
	attrs    []attribute.KeyValue
	several  bool // addresses
}

// place is one shard on one host.
type place struct {
	host, dsn, schema string
	attrs             []attribute.KeyValue
	several           bool // addresses of its host
}

// of returns the place of an operation's shard. The caller must not change its attributes.
func (p *places) of(op operation.Info) *place {
	n, host := int(op.Shard), *op.Place
	known := p.known.Load()
	if known != nil && n < len(*known) {
		if found := (*known)[n].Load(); found != nil && found.host == host.Name && found.dsn == host.DSN && found.schema == op.Schema {
			return found
		}
	}
	return p.learn(n, op.Schema, host)
}

func (p *places) learn(n int, schema string, host shards.Host) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.known.Load()
	if known == nil || n >= len(*known) {
		longer := make([]atomic.Pointer[place], max(64, 2*n))
		if known != nil {
			for i := range *known {
				longer[i].Store((*known)[i].Load())
			}
		}
		known = &longer
		p.known.Store(known)
	}
	at := p.address(host)
	namespace := schema
	if at.database != "" {
		namespace = at.database + "|" + schema
	}
	found := &place{host: host.Name, dsn: host.DSN, schema: schema, several: at.several, attrs: append([]attribute.KeyValue{
		semconv.DBSystemNamePostgreSQL,
		semconv.DBNamespace(namespace),
		attribute.Int("kiloshard.shard", n),
		attribute.String("kiloshard.host", host.Name),
		attribute.String("kiloshard.schema", schema),
	}, at.attrs...)}
	(*known)[n].Store(found)
	return found
}

// address returns the address in the DSN of a host. If there are several, only the connection knows which one is the primary. The
// caller holds mu.
func (p *places) address(host shards.Host) address {
	if known, ok := p.hosts[host.Name]; ok && known.dsn == host.DSN {
		return known
	}
	at := address{dsn: host.DSN}
	if config, err := pgconn.ParseConfig(host.ConnString()); err == nil {
		at.database = config.Database
		if at.several = !alone(config); !at.several {
			at.attrs = []attribute.KeyValue{semconv.ServerAddress(config.Host), semconv.ServerPort(int(config.Port))}
		}
	}
	if p.hosts == nil {
		p.hosts = map[string]address{}
	}
	p.hosts[host.Name] = at
	return at
}

// alone reports whether there is one address. pgx lists it a second time for a connection without TLS.
func alone(config *pgconn.Config) bool {
	for _, other := range config.Fallbacks {
		if other.Host != config.Host || other.Port != config.Port {
			return false
		}
	}
	return true
}

// peer adds the address of the server at the other end of an operation's connection, which may be nil.
func (w *workspace) peer(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	if to, ok := conn.PgConn().Conn().RemoteAddr().(*net.TCPAddr); ok {
		w.add(semconv.NetworkPeerAddress(to.IP.String()), semconv.NetworkPeerPort(to.Port))
	}
}
