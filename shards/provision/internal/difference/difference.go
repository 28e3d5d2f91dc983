package difference

// Difference is one difference between a host and the map.
type Difference struct {
	Kind   string
	Schema string
	Found  string
	Want   string
}

// The kinds of [Difference]. Package provision exports them and documents them.
const (
	Missing   = "missing"
	Misplaced = "misplaced"
	Twice     = "on two hosts"
	Function  = "function"
	Sequence  = "sequence"
	Column    = "column"
	Lead      = "lead"
	Fenced    = "fenced"
	Stray     = "stray schema"
	Generator = "generator"
	Directory = "directory"
	Engine    = "engine"
	Old       = "old version"
	Rights    = "rights"
	Extension = "extension"
	Foreign   = "foreign"
	Entities  = "entities"
)

// List is a list of the differences of one host.
type List []Difference

// Add adds a difference.
func (l *List) Add(kind, schema, found, want string) {
	*l = append(*l, Difference{Kind: kind, Schema: schema, Found: found, Want: want})
}

// AddOld adds an object that has another version than the present one. An empty version is a missing one.
func (l *List) AddOld(schema, object, found, want string) {
	if found == "" {
		found = "none"
	}
	l.Add(Old, schema, object+" has version "+found, want+"; kiloshard upgrade brings it")
}

// CopyAdvice says how to remove a shard's copy on a host.
func CopyAdvice(host string) string {
	return "nobody reads a copy; drop or rename it on " + host + " after checking that its rows exist elsewhere"
}
