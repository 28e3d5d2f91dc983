package migrate

// RecycleAfter is recycleAfter as tests have it: so few shards that a small cluster wears out a session.
const RecycleAfter = 50

var _ = func() int { recycleAfter = RecycleAfter; return 0 }()
