package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/texts"
)

// send sends statements together with one Sync, and returns their answers, the first one opened. There is an entry before each, or
// before the first where the others begin or end a transaction, or none where the session has kept the path. sent reports
// whether they were sent. Everything up to a Sync is one transaction to Postgres, unless the caller has begun one: the path is
// set local to it and gone after it, or kept for the next, and either all statements take effect or none. The caller closes
// the answers.
//
// Prepared statements can be lost or out of date without the router's knowing. If the first answer says so, or the
// arguments do not fit the description, the statements are prepared again and, if that has changed them, sent a second time. Nothing happens twice
// by this: an error before the Sync has undone the implicit transaction with all that was in it, so that what is sent
// the second time is all there is. (Of what no rollback undoes there is only what any failed statement may leave too,
// such as a gap in a sequence.) Nor has the caller seen any of the first answers. In a transaction of the caller's the
// error has undone what came before as well, and only the caller can repeat that.
//
// A statement of a caller's transaction is not sent after the end of that transaction, since its entry may be one that does not check
// the path of the session.
func (s *Session) send(ctx context.Context, sc Scope, all []statement) (answers reply, sent bool, err error) {
	if sc.held && s.Conn.PgConn().TxStatus() == 'I' {
		return answers, false, failure.BeforeSend(errTxEnded)
	}
	if !sc.held {
		if err := s.prepareMissing(ctx); err != nil {
			return answers, false, failure.BeforeSend(err)
		}
	}
	if len(all) == 1 {
		s.judge(ctx, sc, &all[0])
	}
	err = s.withBasePath(ctx, sc, func() error {
		known, err := s.describe(ctx, sc, all)
		if isUnknown(err) && s.prepareAnew(ctx, sc) { // the entry before them
			known, err = s.describe(ctx, sc, all)
		}
		if err != nil {
			return failure.BeforeSend(err)
		}
		sc := s.settle(sc, &all[0])
		answers, sent, err = s.try(ctx, sc, all)
		if err != nil && s.prepareAgain(ctx, sc, all, known, sent, err) {
			answers, sent, err = s.try(ctx, sc, all)
		}
		return err
	})
	return answers, sent, err
}

// describe finds or prepares the statements that are to be prepared. It reports whether there was one that had been
// prepared before.
func (s *Session) describe(ctx context.Context, sc Scope, all []statement) (known bool, err error) {
	var missing map[statementKey]Scope
	for i := range all {
		st := &all[i]
		if st.mode != pgx.QueryExecModeCacheStatement {
			continue
		}
		key := statementKey{sc.path, st.sql}
		if kept := s.statements.get(key); kept != nil && !(sc.Reads && s.asksVerdict(sc, kept.text)) {
			st.desc, st.mayKeep, known = kept.desc, kept.mayKeep(), true
		} else {
			st.desc, st.mayKeep = nil, false
			if missing == nil {
				missing = map[statementKey]Scope{}
			}
			missing[key] = sc
		}
	}
	if len(missing) == 0 {
		return known, nil
	}
	found, err := s.prepare(ctx, missing)
	if err != nil {
		return known, err
	}
	var after error // of statements that were prepared after the one that failed: they go in no order
	for i := range all {
		st := &all[i]
		if st.desc != nil || st.mode != pgx.QueryExecModeCacheStatement {
			continue
		}
		key := statementKey{sc.path, st.sql}
		answer := found[key]
		switch {
		case sc.held && failure.SQLState(answer.err) == "25P02":
			after = answer.err
		case answer.err != nil:
			return known, answer.err
		}
		st.desc, st.mayKeep = answer.desc, s.statements.get(key).mayKeep()
	}
	return known, after
}

// try sends the statements once. It reports whether they were sent.
func (s *Session) try(ctx context.Context, sc Scope, all []statement) (reply, bool, error) {
	s.batch, s.at = pgconn.Batch{}, s.Path()
	to := batchSender(&s.batch)
	s.sending = time.Now()
	sc.Keeps = sc.Keeps && len(all) == 1 && all[0].mayKeep
	kept := s.KeepsPath(sc)
	bare := kept || sc.held && s.Conn.PgConn().TxStatus() == 'E' // only the end of a transaction or of a savepoint helps now
	before := 0
	if s.mustWrite(sc) {
		before = len(writingAgain)
		for _, sql := range writingAgain {
			to.params(sql, nil, nil, nil, nil)
		}
	}
	if sc.alone() {
		s.host.count(kept)
	}
	for i := range all {
		if i == 0 && !bare || i > 0 && !sc.opens && sc.ends == nil {
			s.enter(&to, sc, i > 0, all[i].sql)
		}
		if i > 0 && sc.ends != nil {
			to.params(sc.endOfTx(), nil, nil, nil, nil)
		}
		if err := s.queue(to, &all[i]); err != nil {
			return reply{}, false, err
		}
		to.unprepared = to.unprepared || slices.Contains(deallocating, texts.FirstWord(all[i].sql))
	}
	end := ""
	if sc.mayCommit(len(all)) {
		end = s.end(to, sc)
	}
	answers := reply{s.Conn.PgConn().ExecBatch(ctx, &s.batch), s, sc, end}
	for range before {
		if answers.NextResult() {
			_, _ = answers.ResultReader().Close() // its error is the answers' too
		}
	}
	entered := bare
	if !bare && answers.NextResult() {
		entered = s.ReadEntry(sc, answers.ResultReader()) == nil
	}
	begun := entered && answers.NextResult()
	if begun && sc.opens {
		_, err := answers.ResultReader().Close()
		begun = err == nil && answers.NextResult()
	}
	if !begun {
		err := answers.Close()
		if sc.opens && !s.Broken() && s.Conn.PgConn().TxStatus() != 'I' {
			_ = s.rollback(ctx) // there is an error already
		}
		switch {
		case err == nil:
			err = ErrNoAnswer
		case !entered:
			err = s.EntryFailed(sc, err)
		}
		return reply{}, true, err
	}
	return answers, true, nil
}

// prepareAgain prepares the statements again after an error if that may help, and reports whether they can be sent again.
func (s *Session) prepareAgain(ctx context.Context, sc Scope, all []statement, known, sent bool, cause error) bool {
	if entryState(cause) != "" {
		return false
	}
	lost := isUnknown(cause)
	switch {
	case lost:
		// A statement that deallocates one may have deallocated all, as DISCARD ALL does.
		if !s.prepareAnew(ctx, sc) {
			return false
		}
	case known && (!sent || maybeStale(cause)):
		for _, st := range all {
			s.statements.drop(statementKey{sc.path, st.sql})
		}
	default:
		return false
	}
	if sent && sc.held {
		return false
	}
	before := slices.Clone(all)
	if _, err := s.describe(ctx, sc, all); err != nil {
		return false // the first error says more
	}
	return lost || !slices.EqualFunc(before, all, sameShape)
}

// prepareAnew forgets all prepared statements, and prepares the router's own again unless a transaction of the caller's forbids that: an
// error has ended it. It reports whether it has prepared them.
func (s *Session) prepareAnew(ctx context.Context, sc Scope) bool {
	s.forgetAll()
	return !sc.held && s.prepareOwn(ctx) == nil
}

// forgetAll forgets all prepared statements.
func (s *Session) forgetAll() {
	s.statements.dropAll()
	s.ownStatements = nil
}

// sameShape reports whether a statement takes and returns the same types as before.
func sameShape(a, b statement) bool {
	if a.desc == nil || b.desc == nil {
		return a.desc == b.desc
	}
	return slices.Equal(a.desc.ParamOIDs, b.desc.ParamOIDs) &&
		slices.EqualFunc(a.desc.Fields, b.desc.Fields, func(a, b pgconn.FieldDescription) bool {
			return a.Name == b.Name && a.DataTypeOID == b.DataTypeOID && a.TypeModifier == b.TypeModifier
		})
}

// reply are the answers to statements that were sent together.
type reply struct {
	*pgconn.MultiResultReader
	session *Session
	scope   Scope
	end     string // the name of the statement that ends the transaction; empty without one
}

// Close reads what is left of the answers. If a function has deallocated the statement that ends the transaction, the error has
// undone the transaction, and the session sends that statement unprepared from now on.
func (r reply) Close() error {
	err := r.MultiResultReader.Close()
	if r.end != "" && isUnknown(err) && strings.Contains(err.Error(), r.end) {
		r.session.endsUnprepared = true
		r.session.forgetAll()
	}
	return err
}

// next skips the answers to the entry and opens the answer to the next statement. After an error the reply is closed. The error
// of an entry is no [entryError]: the statements before it have run, and one of them may have ended the transaction.
func (r reply) next() error {
	entered := false
	for r.NextResult() {
		if entered {
			return nil
		}
		tag, err := r.ResultReader().Close()
		entered = err == nil && tag.String() != inBlockTag
	}
	switch err := r.Close(); {
	case err == nil:
		return ErrNoAnswer
	case !entered:
		return explainEntry(r.scope, err)
	default:
		return err
	}
}
