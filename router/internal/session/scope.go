package session

// Scope says where the unqualified names of a statement resolve.
type Scope struct {
	path   string       // a search_path
	schema string       // of the shard, which comes first in it
	held   bool         // the statement is in a transaction of the caller's
	opens  bool         // a transaction of the caller's begins with it
	ends   *transaction // of the caller's, which is committed with it
	Reads  bool         // nothing may be written
}
