package files

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"unicode"
)

// NewBody is the text that tern writes into a new migration. A run refuses the file until its up part has SQL.
const NewBody = `-- Write your migrate up statements here

` + upDownSeparator + `

-- Write your migrate down statements here. If this migration is irreversible
-- Then delete the separator line above.
`

// NewName returns the name of the next migration, such as 004_add_likes.sql for "Add likes":
// its number follows the newest one's, with as many digits, three for the first. The title's
// letters and digits stay, in lower case; an underscore replaces everything between them.
func NewName(files fs.FS, title string) (string, error) {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return "", fmt.Errorf("name %q: expected letters or digits in it", title)
	}
	names, err := fileNames(files, slog.New(slog.DiscardHandler))
	if err != nil && !errors.Is(err, errNoFiles) {
		return "", err
	}
	width := 3
	if len(names) > 0 {
		digits, _, _ := strings.Cut(names[len(names)-1], "_")
		width = len(digits)
	}
	return fmt.Sprintf("%0*d_%s.sql", width, len(names)+1, strings.Join(words, "_")), nil
}
