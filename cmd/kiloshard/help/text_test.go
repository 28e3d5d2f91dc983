package help_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/help"
)

func TestText(t *testing.T) {
	t.Parallel()
	topic := help.Topic{Markdown: `# A title

A paragraph whose words go on and on until they reach the end of the line and beyond, see [the
moves](moves.md), [` + "`shards`" + `](../../../shards) and [an article](https://example.org/a).

- an item that is so long that it needs a second line, which begins below its first word
- another, see [moves](moves.md)

## Below

` + "```sh\nkiloshard [status](x)\n\nkiloshard verify\n```" + `
`}
	want := `A TITLE

A paragraph whose words go on and on until they reach the end of the line and
beyond, see the moves (kiloshard help moves), ` + "`shards`" + ` and an article
(https://example.org/a).

- an item that is so long that it needs a second line, which begins below its
  first word
- another, see kiloshard help moves

BELOW

    kiloshard [status](x)

    kiloshard verify`
	if got := topic.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
