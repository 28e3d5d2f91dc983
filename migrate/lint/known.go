package lint

// Known is what texts make, so that a later text is understood. The zero value is ready to use. It is not safe for concurrent
// use.
type Known struct {
	tables    map[string]*table
	functions map[string]*function // by name; its versions with other arguments count as one
	named     map[string]bool      // names of functions, tables and types
	made      map[string]bool      // relations of texts that no shard has run: they have no rows, and nobody uses them
	run       bool                 // shards have run some of the texts
}

// HaveRun says that shards to which the next texts go have run the texts before: the tables that these make may have rows.
func (k *Known) HaveRun() { k.made, k.run = nil, true }

type table struct {
	columns map[string]*column
	key     []string // the columns of its primary key
}

type column struct {
	narrow bool // of a type that cannot hold all IDs
	ids    bool // it gets IDs: by default, or by a key that refers to such a column
}

// function is one whose body Postgres reads when it is called.
type function struct {
	hasPath bool     // it sets its search_path
	names   []string // in its body, without a schema
	user    string   // what calls it for rows that are written; empty for nothing
}

func (k *Known) table(name string) *table {
	if k.tables == nil {
		k.tables = map[string]*table{}
	}
	if k.tables[name] == nil {
		k.tables[name] = &table{columns: map[string]*column{}}
	}
	return k.tables[name]
}
