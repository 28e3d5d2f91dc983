package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/buffered"
	"github.com/kiloshard/kiloshard/router/internal/failure"
)

// Read is a statement of a group of reads on its way to the server.
type Read struct {
	st      statement
	kept    *keptStatement // nil if it is not prepared
	known   bool           // the statement was prepared before
	renewed bool           // it is sent again if its prepared statement was out of date
	before  statement      // as it was then
}

// Renewed reports whether the read may be sent again, because its prepared statement was out of date.
func (r *Read) Renewed() bool { return r.renewed }

// Receive reads the answer to a read, and returns nil for one that is longer than there is room for, in bytes; size is how
// much of it was read.
func (r *Read) Receive(result *pgconn.ResultReader, room int) (a *buffered.Answer, size int, err error) {
	a = buffered.New(r.columns(result))
	for a.Size() <= room {
		if !result.NextRow() {
			a.Tag, err = result.Close()
			return a, a.Size(), err
		}
		a.Add(result.Values())
	}
	_, err = result.Close()
	return nil, a.Size(), err
}

// columns returns the descriptions of the columns of a read's answer, for callers to keep: the connection uses its own
// again.
func (r *Read) columns(result *pgconn.ResultReader) []pgconn.FieldDescription {
	if r.kept == nil {
		return slices.Clone(result.FieldDescriptions())
	}
	if r.kept.fields == nil {
		r.kept.fields = slices.Clone(result.FieldDescriptions())
	}
	return r.kept.fields
}

// ParseRead takes apart the arguments of a call.
func (s *Session) ParseRead(ctx context.Context, r *Read, sql string, args []any) (err error) {
	r.st, err = s.parse(ctx, sql, args)
	return err
}

// Missing holds the statements of reads that are not prepared yet.
type Missing struct {
	under map[statementKey]Scope
	found map[statementKey]prepared
}

// FindRead finds the prepared statement of a read, or adds it to those that are missing.
func (s *Session) FindRead(r *Read, sc Scope, missing *Missing) {
	if r.st.mode != pgx.QueryExecModeCacheStatement {
		return
	}
	key := statementKey{sc.path, r.st.sql}
	if r.kept = s.statements.get(key); r.kept != nil && s.asksVerdict(sc, r.kept.text) {
		r.kept = nil
	}
	if r.known = r.kept != nil; r.known {
		r.st.desc = r.kept.desc
		return
	}
	r.st.desc = nil
	if missing.under == nil {
		missing.under = map[statementKey]Scope{}
	}
	missing.under[key] = sc
}

// PrepareReads prepares what is missing. It returns false if nothing was missing. The error is one of the connection.
func (s *Session) PrepareReads(ctx context.Context, missing *Missing) (did bool, err error) {
	err = s.prepareMissing(ctx)
	if len(missing.under) == 0 && err == nil {
		return false, nil
	}
	if err == nil {
		missing.found, err = s.prepare(ctx, missing.under)
	}
	return true, failure.BeforeSend(err)
}

// TakePrepared gives a read its statement from those that were prepared. The error is that of its statement.
func (s *Session) TakePrepared(r *Read, sc Scope, missing *Missing) error {
	if r.st.mode != pgx.QueryExecModeCacheStatement || r.st.desc != nil {
		return nil
	}
	key := statementKey{sc.path, r.st.sql}
	answer := missing.found[key]
	r.st.desc = answer.desc
	r.kept = s.statements.get(key)
	return answer.err
}

// SameAsBefore reports whether a read whose statement was out of date is no other statement now that it has been prepared
// again, so that it would fail once more.
func (r *Read) SameAsBefore() bool {
	if r.before.desc != nil && sameShape(r.before, r.st) {
		return true
	}
	r.before = statement{}
	return false
}

// OutOfDate forgets a read's prepared statement if that may be what its error comes from.
func (s *Session) OutOfDate(r *Read, sc Scope, err error) bool {
	switch {
	case err == nil || r.renewed:
		return false
	case isUnknown(err):
		s.forgetAll()
		r.renewed, r.before = true, statement{}
		return true
	case r.known && maybeStale(err):
		s.statements.drop(statementKey{sc.path, r.st.sql})
		r.renewed, r.before = true, r.st
		return true
	}
	return false
}

// Pipeline sends groups of reads.
type Pipeline struct {
	*pgconn.Pipeline
	session *Session
	to      sender
}

// StartReads begins to send groups of reads. Each is one transaction: its reads, an entry before the first, and a Sync.
func (s *Session) StartReads(ctx context.Context) Pipeline {
	s.sending = time.Now()
	s.at = s.Path()
	pipeline := s.Conn.PgConn().StartPipeline(ctx)
	return Pipeline{pipeline, s, pipelineSender(pipeline)}
}

// Forget has the catalog be asked again about what the server was given.
func (r *Read) Forget() {
	if r.kept != nil {
		r.kept.text.Forget()
	}
}

// MayKeep reports whether the session may keep the path for a read.
func (r *Read) MayKeep() bool { return r.kept.mayKeep() }

// KeepsPath reports whether a group goes without an entry. No other may have been sent before it in the pipeline.
func (p *Pipeline) KeepsPath(sc Scope) bool { return p.session.KeepsPath(sc) }

// EndGroup ends a group, which went without an entry or not.
func (p *Pipeline) EndGroup(kept bool) {
	p.session.host.count(kept)
	p.SendPipelineSync()
}

// Send sends a read, with an entry before it if its group has not had one. After an error nothing was sent.
func (p *Pipeline) Send(r *Read, sc Scope, enters bool) error {
	s := p.session
	formats, err := s.encodeRead(r)
	if err != nil {
		return err
	}
	if enters {
		s.sendEntry(p.to, sc, false)
	}
	if d := r.st.desc; d != nil && d.Name != "" {
		p.to.byName(d, s.encoder.ParamValues, s.encoder.ParamFormats, formats)
		return nil
	}
	var oids []uint32
	if d := r.st.desc; d != nil {
		oids = d.ParamOIDs
	}
	p.to.params(r.st.sql, s.encoder.ParamValues, oids, s.encoder.ParamFormats, formats)
	return nil
}

// AskPath asks for the path.
func (p *Pipeline) AskPath() { p.session.own(p.to, pathName, nil) }

// encodeRead encodes a read's arguments, and returns the formats of its results, which are the same each time.
func (s *Session) encodeRead(r *Read) ([]int16, error) {
	if r.kept == nil || r.kept.formats == nil {
		formats, err := s.encodeFor(&r.st)
		if r.kept != nil {
			r.kept.formats = formats
		}
		return formats, err
	}
	if want, got := len(r.st.desc.ParamOIDs), len(r.st.args); want != got {
		return nil, fmt.Errorf("expected %d arguments, got %d", want, got)
	}
	return r.kept.formats, s.encode(r.st.desc, r.st.args)
}
