package migrate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/sql"
)

// ErrLeftShard says that a file changed something outside the shard that it ran in, such as a table of schema public or a
// role. The file is rolled back there. The run starts no other shard, since the file does the same in each.
var ErrLeftShard = errors.New("it changes what is outside its shard")

// leftError is an [ErrLeftShard] with the objects.
type leftError struct {
	objects string   // up to three
	schema  string   // of the first; empty if it is in none
	shared  []string // the schemas that the file may change, if it runs once a host
}

// Is makes the error an [ErrLeftShard].
func (*leftError) Is(target error) bool { return target == ErrLeftShard }

// Error names the objects, and says what to do.
func (e *leftError) Error() string {
	text := fmt.Sprintf("%s: %s; ", ErrLeftShard, e.objects)
	extension, isExtension := strings.CutPrefix(e.objects, "extension ")
	if len(e.shared) > 0 {
		text = fmt.Sprintf("it runs once a host, and changes more than the schemas that the config shares, which are %s: %s; ", strings.Join(e.shared, ", "), e.objects)
	}
	switch {
	case isExtension:
		name, _, _ := strings.Cut(extension, ",")
		text += fmt.Sprintf("put \"extensions: [%s]\" into the config, and run kiloshard create, which makes it on each host, in schema public; "+
			"then CREATE EXTENSION IF NOT EXISTS changes nothing, and may stay in the file", name)
	case len(e.shared) > 0:
		return strings.TrimSuffix(text, "; ")
	case e.schema == "":
		text += "take it out of the file, and run it once on each host, with psql"
	default:
		text += fmt.Sprintf("use names without a schema, which mean the shard's own; what all shards of a host share goes into a file of its own with the first line %q, "+
			"and its schema into the config: \"shared: [%s]\"", sharedMark, e.schema)
	}
	return text
}

// leftShard returns a [leftError] if the server's error is one, or nil.
func leftShard(err error) *leftError {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != sql.LeftShard {
		return nil
	}
	return &leftError{objects: pg.Message, schema: pg.SchemaName}
}

// outside returns a [FileError] for a file that left its shard, with the statement that probably did: the first one that
// names the schema, or the only one.
func (f file) outside(left *leftError) *FileError {
	for _, s := range f.statements {
		if len(f.statements) == 1 {
			return f.wrong(s.Start, s.in(f.sql), left)
		}
		for t := range sqltext.Tokens(s.in(f.sql)) {
			if left.schema != "" && t.Name() == left.schema {
				return f.wrong(s.Start, s.in(f.sql), left)
			}
		}
	}
	return &FileError{File: f.name, Err: left}
}

// hostFile is a file that stayed inside a shard of a host, by a look at every catalog. The other shards of the host cost
// less: see kiloshard.changed_objects.
type hostFile struct {
	host   string
	number int32
}

// everyChecked reports whether all files are checked on a host.
func (r *run) everyChecked(host string, files []file) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range files {
		if !r.checked[hostFile{host, f.number}] {
			return false
		}
	}
	return true
}

// haveChecked records that files are checked on a host.
func (r *run) haveChecked(host string, files []file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range files {
		r.checked[hostFile{host, f.number}] = true
	}
}
