package backend

import "time"

// Version is one version of the map's document, as a store keeps it.
type Version struct {
	Number   int // 0 only in a file that has never been changed by a store
	Document []byte
	At       time.Time // by the store's clock
	By       string
	Why      string
	Role     string // in Postgres, the role that made it
	Name     string // of the document, for errors
}

// Propose returns the version that is to follow now, without its time; now is nil if the store is empty. A store may
// call it more than once for one change.
type Propose func(now *Version) (*Version, error)

// Report passes on the current version, nil if the store is empty, or why the store did not answer.
type Report func(now *Version, err error)

// NumberOf returns a version's number, 0 for nil.
func NumberOf(v *Version) int {
	if v == nil {
		return 0
	}
	return v.Number
}
