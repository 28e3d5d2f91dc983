package connect

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// EncodingError says that a database does not keep texts as UTF-8, and how to make one that does. initdb chooses another encoding where
// the environment names no locale, as in a bare Debian.
type EncodingError struct {
	Database, Role string
	Found          string // such as SQL_ASCII
}

// Error names the database and the commands that replace it, if it is still empty.
func (e *EncodingError) Error() string {
	name := shellWord(e.Database)
	return fmt.Sprintf("database %s has encoding %s, expected UTF8: if there is nothing in it yet, dropdb %s && createdb -O %s -T template0 -E UTF8 --locale=C %[3]s",
		e.Database, e.Found, name, shellWord(e.Role))
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./-]*$`)

func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// checkEncoding returns an [EncodingError] if a server reports another encoding than UTF8 for its database. A pooler may report none.
func checkEncoding(conn *pgconn.PgConn, host shards.Host) error {
	found := conn.ParameterStatus("server_encoding")
	if found == "" || found == "UTF8" {
		return nil
	}
	config, err := parse(host)
	if err != nil {
		return err
	}
	return &EncodingError{Database: config.ConnConfig.Database, Role: config.ConnConfig.User, Found: found}
}
