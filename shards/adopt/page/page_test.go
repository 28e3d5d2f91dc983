package page_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/adopt/page"
)

func TestNothingGetsOut(t *testing.T) {
	t.Parallel()
	const evil = `</title><script>alert(1)</script>" onmouseover='x' {{.Title}} <img src=http://example.com/x> &`
	p := page.Page{Title: evil, Facts: []string{evil}}
	p.Add(page.Section{ID: "one", Head: evil, Note: evil, Columns: []string{evil, ">" + evil}, Rows: [][]string{{evil, evil}}})
	p.Add(page.Section{ID: "two", Head: "no rows"})
	var out strings.Builder
	if err := p.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"<script", "<img", ` onmouseover='`, "href=", "@import", "url(", "no rows"} {
		if strings.Contains(out.String(), never) {
			t.Errorf("it has %s in it", never)
		}
	}
	if n := strings.Count(out.String(), "&lt;script&gt;"); n != 9 {
		t.Errorf("the text is there %d times, expected 9", n)
	}
	if !strings.Contains(out.String(), `<td class="r">`) {
		t.Error("no column is aligned to the right")
	}
	full := errors.New("the disk is full")
	if err := p.WriteHTML(failing{full}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
