package tracing

import (
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/kiloshard/kiloshard/router/operation"
)

// textLimit is the length limit of a recorded text or argument, in bytes.
const textLimit = 4096

// workspace holds the attributes and options of one span until the span has copied them.
type workspace struct {
	attrs   []attribute.KeyValue
	options []trace.SpanStartOption
}

var spare = sync.Pool{New: func() any { return &workspace{} }}

func borrow() *workspace { return spare.Get().(*workspace) }

func (w *workspace) giveBack() {
	clear(w.attrs)
	clear(w.options)
	w.attrs, w.options = w.attrs[:0], w.options[:0]
	spare.Put(w)
}

func (w *workspace) add(attrs ...attribute.KeyValue) { w.attrs = append(w.attrs, attrs...) }

// describe adds the attributes of an operation on a shard. For a host with several addresses, they include the one it goes to.
func (w *workspace) describe(at *place, op operation.Info, conn *pgx.Conn) {
	w.add(at.attrs...)
	w.operation(op)
	if at.several {
		w.peer(conn)
	}
}

var kinds = func() (of []attribute.KeyValue) {
	for _, kind := range operation.Kinds() {
		of = append(of, attribute.String("kiloshard.kind", kind.String()))
	}
	return of
}()

// operation adds the attributes that differ between operations on a shard.
func (w *workspace) operation(op operation.Info) {
	if op.Kind != operation.Read && op.Kind != operation.Write { // the summary says it for these
		w.add(kinds[op.Kind])
	}
	if op.Summary != "" {
		w.add(semconv.DBQuerySummary(op.Summary))
	}
	if op.Waited > 0 {
		w.add(attribute.Float64("kiloshard.waited", op.Waited.Seconds()))
	}
	if op.Together > 1 {
		w.add(attribute.Int("kiloshard.together", op.Together))
	}
	if op.Attempt > 1 {
		w.add(attribute.Int("kiloshard.attempt", op.Attempt))
	}
}

// arguments returns the arguments of a statement, without the options of pgx before them.
func arguments(args []any) (attrs []attribute.KeyValue) {
	for _, arg := range args {
		switch arg := arg.(type) {
		case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
		case pgx.NamedArgs:
			return named(arg)
		case pgx.StrictNamedArgs:
			return named(arg)
		default:
			attrs = append(attrs, semconv.DBQueryParameter(fmt.Sprint(len(attrs)), short(fmt.Sprint(arg))))
		}
	}
	return attrs
}

func named(args map[string]any) (attrs []attribute.KeyValue) {
	for name, arg := range args {
		attrs = append(attrs, semconv.DBQueryParameter(name, short(fmt.Sprint(arg))))
	}
	return attrs
}

// texts returns the texts of a batch.
func texts(batch *pgx.Batch) string {
	var all []string
	for _, query := range batch.QueuedQueries {
		if len(all) == 0 || all[len(all)-1] != query.SQL {
			all = append(all, query.SQL)
		}
	}
	return short(strings.Join(all, "; "))
}

func short(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), textLimit)], "")
}
