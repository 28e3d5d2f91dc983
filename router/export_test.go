package router

// Reads tells whether SQL may be sent together with that of other callers.
func Reads(sql string) bool { return traitsOf(sql).reads }

// Leaves tells whether SQL may leave something behind on a session.
func Leaves(sql string) bool { return traitsOf(sql).leaves }

// GoesOn tells whether SQL goes on after it has ended a transaction.
func GoesOn(sql string) bool { return traitsOf(sql).goesOn }

// Batch is how many calls are sent together at most.
const Batch = batchLimit

// AnswerPart is the size of an answer past which it is handed out in parts.
const AnswerPart = answerPart

// AheadEnough is how many statements in a row have a connection stay with a shard.
const AheadEnough = aheadEnough

// LimitHomes sets how many shards a connection to any host may have worked for.
func (r *Router) LimitHomes(n int) {
	for _, h := range r.hosts {
		h.knownLimit = n
	}
}

// Slow tells whether a statement is kept away from others on the shard's host.
func (s Shard) Slow(sql string) bool {
	texts := s.home.host.texts
	return texts.slow(texts.of(sql))
}
