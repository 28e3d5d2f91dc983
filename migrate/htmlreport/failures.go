package htmlreport

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// failuresShown is how many different failures are listed. The squares of the other shards show theirs.
const failuresShown = 200

// titleErrors is the approximate limit, in characters, of all errors in the titles of squares together.
const titleErrors = 400_000

// failure is one cause, and the shards that it made fail.
type failure struct {
	Shards    shards.Set
	Count     int
	Hosts     string
	SQLSTATE  string
	File      string
	Line      int  // 0 when unknown
	Rendered  bool // Line counts the lines of the rendered file
	Error     string
	Statement string
}

// failures groups the failed shards by cause, in the order of each cause's first shard. It also returns how many shards are
// not in the list.
func failures(all []*shards.ShardError) (list []failure, leftOut int) {
	at := map[string]int{}
	var numbers [][]shards.Number
	var hosts [][]string
	for _, f := range all {
		cause := f.Err.Error()
		i, known := at[cause]
		switch {
		case known:
		case len(list) == failuresShown:
			leftOut++
			continue
		default:
			i = len(list)
			at[cause] = i
			list = append(list, newFailure(f.Err))
			numbers, hosts = append(numbers, nil), append(hosts, nil)
		}
		numbers[i] = append(numbers[i], f.Shard)
		if !slices.Contains(hosts[i], f.Host) {
			hosts[i] = append(hosts[i], f.Host)
		}
	}
	for i := range list {
		list[i].Shards, list[i].Count, list[i].Hosts = shards.SetOf(numbers[i]...), len(numbers[i]), strings.Join(hosts[i], ", ")
	}
	return list, leftOut
}

func newFailure(err error) failure {
	f := failure{Error: shortened(err.Error(), 500)}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		f.SQLSTATE = pg.Code
	}
	var file *migrate.FileError
	if errors.As(err, &file) {
		f.File, f.Line, f.Rendered, f.Statement = file.File, file.Line, file.Rendered, shortened(file.Statement, 500)
	}
	return f
}
