package migrate

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template/parse"
)

// outside are the functions of tern's templates that read something other than the files.
var outside = []string{"env", "expandenv", "getHostByName"}

// checkTemplates returns a [FileError] for the first file whose template reads the environment or looks up addresses: the
// author of a file must not read the environment of the process that migrates.
func checkTemplates(files fs.FS) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".sql" {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil || !strings.Contains(string(body), "{{") {
			return err
		}
		trees, err := parseTemplates(name, body)
		if err != nil {
			return nil //nolint:nilerr // tern says what is wrong with it
		}
		for _, t := range trees {
			if function := outsideIn(t.Root); function != "" {
				return &FileError{File: name, Err: fmt.Errorf("its template calls %s: expected none of %s, or Config.TemplateEnv (--template-env)", function, strings.Join(outside, ", "))}
			}
		}
		return nil
	})
}

// outsideIn returns the name of the first function of outside that a template node calls, empty for none.
func outsideIn(node parse.Node) string {
	for n := range nodesOf(node) {
		if f, ok := n.(*parse.IdentifierNode); ok && slices.Contains(outside, f.Ident) {
			return f.Ident
		}
	}
	return ""
}
