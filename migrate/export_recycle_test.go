package migrate

import "github.com/kiloshard/kiloshard/migrate/internal/session"

// RecycleAfter is session.RecycleAfter as tests have it: so few shards that a small cluster wears out a session.
const RecycleAfter = 50

var _ = func() int { session.RecycleAfter = RecycleAfter; return 0 }()
