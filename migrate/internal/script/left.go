package script

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/fileerror"
	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/sql"
)

// ErrLeftShard says that a file changed something outside the shard that it ran in, such as a table of schema public or a
// role. The file is rolled back there. The run starts no other shard, since the file does the same in each.
var ErrLeftShard = errors.New("it changes what is outside its shard")

// LeftError is an [ErrLeftShard] with the objects.
type LeftError struct {
	Objects string   // up to three
	Schema  string   // of the first; empty if it is in none
	Shared  []string // the schemas that the file may change, if it runs once a host
}

// Is makes the error an [ErrLeftShard].
func (*LeftError) Is(target error) bool { return target == ErrLeftShard }

// Error names the objects, and says what to do.
func (e *LeftError) Error() string {
	text := fmt.Sprintf("%s: %s; ", ErrLeftShard, e.Objects)
	extension, isExtension := strings.CutPrefix(e.Objects, "extension ")
	if len(e.Shared) > 0 {
		text = fmt.Sprintf("it runs once a host, and changes more than the schemas that the config shares, which are %s: %s; ", strings.Join(e.Shared, ", "), e.Objects)
	}
	switch {
	case isExtension:
		name, _, _ := strings.Cut(extension, ",")
		text += fmt.Sprintf("put \"extensions: [%s]\" into the config, and run kiloshard create, which makes it on each host, in schema public; "+
			"then CREATE EXTENSION IF NOT EXISTS changes nothing, and may stay in the file", name)
	case len(e.Shared) > 0:
		return strings.TrimSuffix(text, "; ")
	case e.Schema == "":
		text += "take it out of the file, and run it once on each host, with psql"
	default:
		text += fmt.Sprintf("use names without a schema, which mean the shard's own; what all shards of a host share goes into a file of its own with the first line %q, "+
			"and its schema into the config: \"shared: [%s]\"", files.SharedMark, e.Schema)
	}
	return text
}

// Left returns a [LeftError] if the server's error is one, or nil.
func Left(err error) *LeftError {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != sql.LeftShard {
		return nil
	}
	return &LeftError{Objects: pg.Message, Schema: pg.SchemaName}
}

// in returns the error of the file that left its shard, with the statement that probably did: the first one that
// names the schema, or the only one.
func (e *LeftError) in(f files.File) *fileerror.Error {
	for _, s := range f.Statements {
		if len(f.Statements) == 1 {
			return f.Wrong(s.Start, s.In(f.SQL), e)
		}
		for t := range sqltext.Tokens(s.In(f.SQL)) {
			if e.Schema != "" && t.Name() == e.Schema {
				return f.Wrong(s.Start, s.In(f.SQL), e)
			}
		}
	}
	return &fileerror.Error{File: f.Name, Err: e}
}
