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
	var users, photos, likes, follows Range
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
	return map[string]Range{"users": users, "photos": photos, "likes": likes, "follows": follows}
}
