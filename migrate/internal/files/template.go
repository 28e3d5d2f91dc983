package files

import (
	"bytes"
	"fmt"
	"io/fs"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"text/template/parse"

	"github.com/kiloshard/kiloshard/migrate/fileerror"
)

// braces says how to write what a template takes for its own.
const braces = `write {{"{{"}} for two braces of SQL, as in '{{"{{"}}1,2},{3,4}}'`

// templateErrorPattern matches the errors of text/template: the name, which tern ends with the part's, and the line of that.
var templateErrorPattern = regexp.MustCompile(`(?s)^template: (.+?)(?: (up|down))?:(\d+)(?::\d+)?: (.*)$`)

// templateError returns tern's error of a template as a [fileerror.Error], and nil for another error.
func (d *Directory) templateError(err error) error {
	found := templateErrorPattern.FindStringSubmatch(err.Error())
	if found == nil {
		return nil
	}
	line, _ := strconv.Atoi(found[3]) // the pattern has digits only
	if i := slices.Index(d.Names, found[1]); i >= 0 && found[2] != "" {
		line += d.firstLine[Direction(found[2])][i] - 1
	}
	return &fileerror.Error{File: found[1], Line: line, Err: fmt.Errorf("a file is a Go template, and this one fails: %s; %s", found[4], braces)}
}

// unknownValue returns the [fileerror.Error] of a template that uses a value that tern does not know, with the first such value.
func (d *Directory) unknownValue(name string) error {
	e := &fileerror.Error{File: name, Err: fmt.Errorf("its template uses an unknown value: expected {{.schema}} or {{.shard}}; %s", braces)}
	body, trees := d.Parsed(name)
	for _, t := range trees {
		for node := range NodesOf(t.Root) {
			if f, ok := node.(*parse.FieldNode); ok && e.Line == 0 && f.Ident[0] != "schema" && f.Ident[0] != "shard" {
				e.Line = LineAt(body, node)
				e.Err = fmt.Errorf("its template uses an unknown value, %s: expected {{.schema}} or {{.shard}}; %s", f, braces)
			}
		}
	}
	return e
}

// Parsed returns a file and the templates in it; none for one that cannot be parsed.
func (d *Directory) Parsed(name string) ([]byte, map[string]*parse.Tree) {
	body, err := fs.ReadFile(d.files, name)
	if err != nil {
		return nil, nil
	}
	trees, _ := parseTemplates(name, body) // tern says what is wrong
	return body, trees
}

// parseTemplates returns the template of a file, and those that it defines.
func parseTemplates(name string, body []byte) (map[string]*parse.Tree, error) {
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(string(body), "", "", trees); err != nil {
		return nil, err
	}
	trees[name] = tree
	return trees, nil
}

// LineAt returns the 1-based line of a node.
func LineAt(body []byte, node parse.Node) int {
	return 1 + bytes.Count(body[:min(int(node.Position()), len(body))], []byte("\n"))
}

// NodesOf returns a node and all nodes in it, in the order of their text.
func NodesOf(node parse.Node) iter.Seq[parse.Node] {
	return func(yield func(parse.Node) bool) { walk(node, yield) }
}

func walk(node parse.Node, yield func(parse.Node) bool) bool {
	var parts []parse.Node
	branch := func(b *parse.BranchNode) { parts = []parse.Node{b.Pipe, b.List, b.ElseList} }
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return true
		}
		parts = n.Nodes
	case *parse.PipeNode:
		if n == nil {
			return true
		}
		for _, c := range n.Cmds {
			parts = append(parts, c)
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
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	}
	if !yield(node) {
		return false
	}
	for _, part := range parts {
		if !walk(part, yield) {
			return false
		}
	}
	return true
}
