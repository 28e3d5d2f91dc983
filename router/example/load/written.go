package load

// Range is how many rows there may be: each acknowledged write made one, and each that was given up one or none.
type Range struct{ Least, Most int }

// Has tells whether a number is in the range.
func (r Range) Has(n int) bool { return n >= r.Least && n <= r.Most }

func (r *Range) count(o outcome) {
	if r.Most++; o == acknowledged {
		r.Least++
	}
}

// Written returns how many rows the tables of a service have that nobody else has used. Nothing may be under way.
func (l *Load) Written() map[string]Range {
	var users, photos, likes, follows, boards, notes Range
	for _, id := range l.books.names {
		users.count(outcome(id != 0))
	}
	for _, posts := range l.books.posts {
		for _, id := range posts {
			photos.count(outcome(id != 0))
		}
	}
	for _, o := range l.books.likes {
		likes.count(o)
	}
	for _, o := range l.books.follows {
		follows.count(o)
	}
	for _, made := range l.books.boards {
		boards.count(outcome(made.id != 0))
	}
	for _, texts := range l.books.notes {
		for _, o := range texts {
			notes.count(o)
		}
	}
	return map[string]Range{
		"users": users, "photos": photos, "likes": likes, "follows": follows,
		"boards_by_request": boards, "entities": notes, "notes_by_user": notes,
	}
}
