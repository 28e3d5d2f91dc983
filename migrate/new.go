package migrate

import (
	"io/fs"

	"github.com/kiloshard/kiloshard/migrate/internal/files"
)

// NewFileBody is the text that tern writes into a new migration. [Up] refuses the file until its up part has SQL.
const NewFileBody = files.NewBody

// NewFileName returns the name of the next migration, such as 004_add_likes.sql for "Add likes":
// its number follows the newest one's, with as many digits, three for the first. The title's
// letters and digits stay, in lower case; an underscore replaces everything between them.
func NewFileName(directory fs.FS, title string) (string, error) {
	return files.NewName(directory, title)
}

// FileNames returns the names of the migrations of a directory, that of version 1 first.
func FileNames(directory fs.FS) ([]string, error) { return files.Names(directory) }
