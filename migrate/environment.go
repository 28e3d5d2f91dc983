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
		tree := parse.New(name)
		tree.Mode = parse.SkipFuncCheck
		trees := map[string]*parse.Tree{}
		if _, err := tree.Parse(string(body), "", "", trees); err != nil {
			return nil //nolint:nilerr // tern says what is wrong with it
		}
		trees[name] = tree
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
	var parts []parse.Node
	switch n := node.(type) {
	case *parse.IdentifierNode:
		if slices.Contains(outside, n.Ident) {
			return n.Ident
		}
	case *parse.ListNode:
		if n != nil {
			parts = n.Nodes
		}
	case *parse.PipeNode:
		if n != nil {
			for _, c := range n.Cmds {
				parts = append(parts, c)
			}
		}
	case *parse.CommandNode:
		parts = n.Args
	case *parse.ChainNode:
		parts = []parse.Node{n.Node}
	case *parse.ActionNode:
		parts = []parse.Node{n.Pipe}
	case *parse.TemplateNode:
		parts = []parse.Node{n.Pipe}
	case *parse.IfNode:
		parts = []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.RangeNode:
		parts = []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.WithNode:
		parts = []parse.Node{n.Pipe, n.List, n.ElseList}
	}
	for _, part := range parts {
		if found := outsideIn(part); found != "" {
			return found
		}
	}
	return ""
}
