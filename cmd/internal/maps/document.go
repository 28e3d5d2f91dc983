package maps

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// writtenVersion is a version as it stands in a file of kiloshard map export.
type writtenVersion struct {
	cli.MapVersion
	document []byte
}

// historyHead begins a file with more than one version: a YAML document for each, the oldest first, behind a comment
// with the rest of it in JSON.
const historyHead = "# kiloshard map history"

const (
	historyEntry = "\n# version "
	documentEnd  = "---\n"
)

func writeHistory(versions []writtenVersion) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: versions %d to %d, for kiloshard map import", historyHead, versions[0].Version, versions[len(versions)-1].Version)
	for _, v := range versions {
		head, err := json.Marshal(v.MapVersion)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n%s%s%s\n%s", documentEnd[:3], historyEntry, head, bytes.TrimSuffix(v.document, []byte("\n")))
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// readHistory reads what writeHistory wrote, and reports whether it is that.
func readHistory(text []byte) (versions []writtenVersion, ok bool, err error) {
	if !bytes.HasPrefix(text, []byte(historyHead)) {
		return nil, false, nil
	}
	for i, part := range bytes.Split(text, []byte("\n"+documentEnd))[1:] {
		head, document, _ := bytes.Cut(part, []byte("\n"))
		head, found := bytes.CutPrefix(head, []byte(historyEntry[1:]))
		var v writtenVersion
		if !found || json.Unmarshal(head, &v.MapVersion) != nil {
			return nil, true, cli.Usagef("entry %d of the history: expected it to begin with %q and who made it, when and why", i+1, historyEntry[1:])
		}
		v.document = append(document, '\n')
		versions = append(versions, v)
	}
	if len(versions) == 0 {
		return nil, true, cli.Usagef("the history holds no version")
	}
	return versions, true, nil
}
