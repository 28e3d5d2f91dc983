package shards_test

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

// Documents that would take too long are refused before the parser sees them: its time grows with the square of some
// counts, and 1 MiB took up to half a minute.
func TestDocumentsThatWouldTakeForever(t *testing.T) {
	t.Parallel()
	const size = 1 << 17
	for name, text := range map[string]string{
		"fields":        strings.Repeat("a: b\n", size/5),
		"inner fields":  "a:\n" + strings.Repeat("  b: c\n", size/7),
		"anchors":       strings.Repeat("a: &a b\n", size/8),
		"complex keys":  strings.Repeat("? a\n", size/4),
		"documents":     strings.Repeat("---\na: b\n", size/9),
		"fields in one": "a:\n  - b: c\n" + strings.Repeat("    b: c\n", size/9),
	} {
		_, err := shards.Parse("k.yaml", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), "more fields or documents than a config has") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
