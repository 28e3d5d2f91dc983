package prove

import "fmt"

// protocol is what the programs do, less what is taken out of it.
type protocol struct {
	noVersions    bool // rows of all versions are removed
	noGuard       bool // a writer writes the entity although its claim was ended
	noEnd         bool // a write does not end the claims of other writers
	lowersVersion bool // a writer gives a row its version although the row has a higher one
	drawsEarly    bool // a writer draws its version before it has the lock of the entity
	noPending     bool // a writer does not write unchanged rows although other work waits
	readsFirst    bool // repair reads the entity before it ends claims
	noRelease     bool // repair does not end claims
	ownRelease    bool // repair ends only the claim of its own version
	blindFinish   bool // a writer deletes its work although the entity has changed
	lateWork      bool // the work is written after the entity
	lateClaim     bool // rows of the unique index are written after the entity
	blindContest  bool // a stray row is removed although a claim may need it
	looseContest  bool // a stray row is removed although it has another version by then
	keepsClaim    bool // a failed writer keeps its rows
	walksOnce     bool // the walk does not look at the entity again after it has added a row
	walksOver     bool // the walk gives rows its version, also if they are there

	tells bool // what it does; an exploration of many steps has no use for it
}

func (r *protocol) say(format string, args ...any) string {
	if !r.tells {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// kind is the kind of a program.
type kind int8

const (
	idler kind = iota
	putter
	refused // a putter whose body the entity's shard refuses at the end
	deleter
	cleaner
)

// point is where a program stands: what it does next.
type point int8

const (
	beginning point = iota
	drawn
	recording
	claiming
	looking
	clearing
	committing
	writing
	removing
	finishing
	releasing
	reading
	rewriting
	sweeping
	refinishing
	adding
	lookingBack
	tidying
	ended
)

// program is a writer or the cleaner.
type program struct {
	kind          kind
	of, value     int8 // what it writes
	at            point
	v             int8 // the version of its work
	before, after int8
	pending       bool
	claimed       bool
	retried       bool
	retry         bool // after the repair
	now           entity
	held          holder // the row that it contests
}

// act does a program's next step and says what it was. It returns false if the program has nothing to do.
func (r *protocol) act(w *world, i int) (what string, ok bool) {
	p := &w.p[i]
	e := &w.e[p.of]
	switch p.at {
	case beginning:
		if p.kind == idler || p.kind == cleaner {
			return "", false
		}
		if r.drawsEarly && p.v == 0 {
			w.last++
			p.v, p.at = w.last, drawn
			return r.say("draws version %d", p.v), true
		}
		return r.begin(w, p), true
	case drawn:
		return r.begin(w, p), true
	case recording:
		w.w[p.v] = work{written, p.of, p.before, p.after}
		p.at = writing
		return "records its work", true
	case claiming:
		return r.claim(w, p), true
	case looking:
		if h := w.e[p.held.of]; h.version > 0 && h.value == p.value || w.claiming(p.held.of) && !r.blindContest {
			r.giveBack(p, false)
			return r.say("sees that %s has %s, or may have it", entityNames[p.held.of], valueNames[p.value]), true
		}
		p.at = clearing
		return r.say("sees that %s does not have %s", entityNames[p.held.of], valueNames[p.value]), true
	case clearing:
		p.at = claiming
		if u := &w.unique[p.value]; *u == p.held || r.looseContest && u.of == p.held.of {
			*u = holder{}
			return "removes that row", true
		}
		return "finds that row changed", true
	case committing:
		return r.commit(w, p), true
	case writing:
		if p.after != none && (p.before != p.after || p.pending && !r.noPending) {
			r.write(w, p, p.after, p.v)
		}
		p.at = removing
		return r.say("writes the row of %s with version %d", valueNames[p.after], p.v), true
	case removing:
		if p.before != p.after {
			r.remove(w, p.of, p.before, p.v)
		}
		p.at = finishing
		return r.say("removes the row of %s up to version %d", valueNames[p.before], p.v), true
	case finishing:
		want := p.v
		if p.kind == deleter {
			want = 0
		}
		if e.version != want && !r.blindFinish {
			p.at = releasing
			return "sees that the entity has changed", true
		}
		w.w[p.v].state, p.at = absent, ended
		return "deletes its work", true
	case releasing, reading:
		if r.readsFirst && p.at == releasing {
			p.now, p.at = *e, reading
			return r.say("reads version %d with %s", p.now.version, valueNames[p.now.value]), true
		}
		switch {
		case r.noRelease:
		case r.ownRelease:
			if w.w[p.v].state == claims {
				w.w[p.v].state = dropped
			}
		default:
			w.end(p.of, p.v, 0)
		}
		if p.at == releasing {
			p.now = *e
		}
		p.at = rewriting
		return r.say("ends claims up to version %d, and knows version %d with %s", p.v, p.now.version, valueNames[p.now.value]), true
	case rewriting:
		p.at = sweeping
		switch {
		case p.now.version == p.v && p.now.value != none:
			r.write(w, p, p.now.value, p.v)
		default:
			return r.act(w, i)
		}
		return r.say("writes the row with version %d again", p.v), true
	case sweeping:
		upTo := max(p.v, p.now.version)
		for _, value := range []int8{p.before, p.after} {
			if p.now.version == 0 || value != p.now.value {
				r.remove(w, p.of, value, upTo)
			}
		}
		p.at = refinishing
		return r.say("removes the rows of %s and %s that the entity does not have, up to version %d", valueNames[p.before], valueNames[p.after], upTo), true
	case refinishing:
		if e.version != p.now.version && !r.blindFinish {
			p.at = releasing
			return "sees that the entity has changed", true
		}
		w.w[p.v].state = absent
		p.done()
		return "deletes the work", true
	case adding:
		return r.add(w, p), true
	case lookingBack:
		if e.version > 0 && e.value == p.now.value || w.claiming(p.of) {
			p.done()
			return "sees that the entity may have the value", true
		}
		p.at = tidying
		return "sees that the entity does not have the value", true
	case tidying:
		if u := &w.unique[p.now.value]; *u == (holder{p.of, p.now.version}) {
			*u = holder{}
		}
		if row := &w.rows[p.now.value][p.of]; *row == p.now.version {
			*row = 0
		}
		p.done()
		return r.say("removes the rows of version %d", p.now.version), true
	}
	return "", false
}

// add is the walk of the cleaner: it adds missing rows.
func (r *protocol) add(w *world, p *program) string {
	u, row := &w.unique[p.now.value], &w.rows[p.now.value][p.of]
	added := *row == 0 || u.version == 0
	if u.version == 0 || r.walksOver && u.of == p.of {
		*u = holder{p.of, p.now.version}
	}
	if *row == 0 || r.walksOver {
		*row = p.now.version
	}
	p.at = lookingBack
	if !added || r.walksOnce {
		p.done()
	}
	return r.say("adds the missing rows of %s with version %d", valueNames[p.now.value], p.now.version)
}

// done ends a program after its repair, or makes it begin again.
func (p *program) done() {
	at := ended
	if p.retry || p.kind == cleaner {
		at = beginning
	}
	*p = program{kind: p.kind, of: p.of, value: p.value, at: at, retried: p.retried || p.retry}
	if p.kind == cleaner {
		p.of = 0
	}
}

// begin is the first transaction of a writer. It writes the entity unless there is a row to claim.
func (r *protocol) begin(w *world, p *program) string {
	e := &w.e[p.of]
	if p.kind == deleter && e.version == 0 {
		p.at = ended
		return "finds no entity to delete"
	}
	p.before = none
	if e.version > 0 {
		p.before = e.value
	}
	if p.v == 0 {
		w.last++
		p.v = w.last
	}
	if p.kind != deleter {
		p.after = p.value
	}
	if p.kind != deleter && p.value != none && p.value != p.before && !r.lateClaim {
		w.w[p.v] = work{claims, p.of, p.before, p.after}
		p.at = claiming
		return r.say("claims %s for %s with version %d", valueNames[p.value], entityNames[p.of], p.v)
	}
	p.pending = w.pending(p.of, p.v)
	p.at = writing
	if p.kind == deleter {
		*e = entity{}
	} else {
		*e = entity{p.v, p.value}
	}
	if !r.noEnd {
		w.end(p.of, versions, p.v)
	}
	switch {
	case p.before == p.after && !p.pending:
		p.at = ended
	case r.lateWork:
		p.at = recording
	default:
		w.w[p.v] = work{written, p.of, p.before, p.after}
	}
	return r.say("writes %s with %s and version %d", entityNames[p.of], valueNames[p.after], p.v)
}

// claim writes the row of the unique index.
func (r *protocol) claim(w *world, p *program) string {
	u := &w.unique[p.value]
	if u.version > 0 && u.of != p.of {
		p.held, p.at = *u, looking
		return r.say("finds the row of %s with version %d", entityNames[u.of], u.version)
	}
	r.raise(u, p.of, p.v)
	p.claimed, p.at = true, committing
	return r.say("writes the row of %s in the unique index with version %d", valueNames[p.value], p.v)
}

func (r *protocol) raise(u *holder, of, v int8) {
	if r.lowersVersion || u.version < v {
		*u = holder{of, v}
	}
}

// commit writes the entity after its rows in the unique index.
func (r *protocol) commit(w *world, p *program) string {
	mine := &w.w[p.v]
	if p.kind == refused {
		r.giveBack(p, false)
		return "cannot write the entity"
	}
	if mine.state != claims && !r.noGuard {
		r.giveBack(p, !p.retried)
		return "finds that its claim was ended"
	}
	*mine = work{written, p.of, p.before, p.after}
	w.e[p.of] = entity{p.v, p.value}
	if !r.noEnd {
		w.end(p.of, versions, p.v)
	}
	p.pending, p.at = w.pending(p.of, p.v), writing
	return r.say("writes %s with %s and version %d", entityNames[p.of], valueNames[p.value], p.v)
}

// giveBack makes a writer remove what it has claimed, and then begin again or end.
func (r *protocol) giveBack(p *program, retry bool) {
	p.retry, p.at = retry, releasing
	if r.keepsClaim {
		p.at = ended
	}
}

// write writes the rows of a value in both indexes.
func (r *protocol) write(w *world, p *program, value, v int8) {
	if u := &w.unique[value]; !p.claimed && (u.version == 0 || u.of == p.of) {
		r.raise(u, p.of, v)
	}
	if row := &w.rows[value][p.of]; r.lowersVersion || *row < v {
		*row = v
	}
}

// remove removes the rows of a value in both indexes, up to a version.
func (r *protocol) remove(w *world, of, value, upTo int8) {
	if value == none {
		return
	}
	if u := &w.unique[value]; u.of == of && (u.version <= upTo || r.noVersions) {
		*u = holder{}
	}
	if row := &w.rows[value][of]; *row <= upTo || r.noVersions {
		*row = 0
	}
}
