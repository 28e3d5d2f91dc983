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

func TestNumbers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := page.Number(n); got != want {
			t.Errorf("%d: got %s", n, got)
		}
	}
	if got := page.Size(12_345_678); got != "12.3 MB" {
		t.Errorf("got %s", got)
	}
}
