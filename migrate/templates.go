package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/shards"
)

// TemplateRiskKind is the kind of a [TemplateRisk].
type TemplateRiskKind string

// The kinds of [TemplateRisk].
const (
	TemplateVaries   TemplateRiskKind = "template-varies"   // another text whenever it is rendered, as by {{now}} and {{uuidv4}}
	TemplateByShard  TemplateRiskKind = "template-by-shard" // the shards' texts differ in more than their names and numbers
	TemplateConstant TemplateRiskKind = "template-constant" // a constant in braces, which is probably an array of SQL: {{1}} is rendered as 1
)

// TemplateRisk is something in a file's template, by which shards may get what its author did not mean.
type TemplateRisk struct {
	Kind TemplateRiskKind
	File string
	Line int    // 1-based, of the file; 0 when unknown
	Text string // the template's, or the two rendered lines that differ
}

// clocks are the functions of tern's templates that read the clock. Two renderings of one day's date are the same.
var clocks = []string{"now", "ago"}

// templateRisks looks at the templates of the sample shard's files: it renders them again, and for two other shards.
func (r *run) templateRisks(sample shards.Number, from int32, pending []files.File) ([]TemplateRisk, error) {
	if !r.directory.HasTemplates() {
		return nil, nil
	}
	again, err := r.directory.Pending(sample, from, r.target, r.way)
	if err != nil {
		return nil, err
	}
	others := map[shards.Number][]files.File{}
	numbers := []shards.Number{0, shards.Number(r.cfg.Map.Len() / 2)}
	for _, n := range numbers {
		if others[n], err = r.directory.Pending(n, from, r.target, r.way); err != nil {
			return nil, err
		}
	}
	var risks []TemplateRisk
	for i, f := range pending {
		if !f.Rendered {
			continue
		}
		risks = append(risks, inTemplate(r.directory, f.Name)...)
		if a, b, differ := difference(f.SQL, again[i].SQL, same); differ {
			risks = append(risks, TemplateRisk{Kind: TemplateVaries, File: f.Name, Text: a + " and " + b})
			continue
		}
		for _, n := range numbers {
			a, b, differ := difference(f.SQL, others[n][i].SQL, r.ownNumbers(sample, n))
			if differ {
				risks = append(risks, TemplateRisk{Kind: TemplateByShard, File: f.Name, Text: fmt.Sprintf("shard %d: %s, shard %d: %s", sample, a, n, b)})
				break
			}
		}
	}
	return risks, nil
}

// inTemplate finds what the text of a template shows.
func inTemplate(d *files.Directory, name string) []TemplateRisk {
	var risks []TemplateRisk
	body, trees := d.Parsed(name)
	for _, t := range trees {
		for node := range files.NodesOf(t.Root) {
			switch n := node.(type) {
			case *parse.IdentifierNode:
				if slices.Contains(clocks, n.Ident) {
					risks = append(risks, TemplateRisk{TemplateVaries, name, files.LineAt(body, n), n.Ident})
				}
			case *parse.ActionNode:
				if isConstant(n) {
					risks = append(risks, TemplateRisk{TemplateConstant, name, files.LineAt(body, n), n.String()})
				}
			}
		}
	}
	slices.SortFunc(risks, func(a, b TemplateRisk) int { return a.Line - b.Line })
	return risks
}

// isConstant reports whether an action is a number, or a text without a brace, by itself.
func isConstant(n *parse.ActionNode) bool {
	if n.Pipe == nil || len(n.Pipe.Decl) > 0 || len(n.Pipe.Cmds) != 1 || len(n.Pipe.Cmds[0].Args) != 1 {
		return false
	}
	switch a := n.Pipe.Cmds[0].Args[0].(type) {
	case *parse.NumberNode, *parse.BoolNode:
		return true
	case *parse.StringNode:
		return !strings.ContainsAny(a.Text, "{}")
	}
	return false
}

func same(a, b string) bool { return a == b }

// ownNumbers compares parts of two shards' texts: they may differ in the shards' names and numbers.
func (r *run) ownNumbers(a, b shards.Number) func(a, b string) bool {
	digits := func(n shards.Number) string {
		schema := r.cfg.Map.Schema(n)
		return schema[len(strings.TrimRight(schema, "0123456789")):]
	}
	return func(textA, textB string) bool {
		return textA == textB || textA == fmt.Sprint(a) && textB == fmt.Sprint(b) || textA == digits(a) && textB == digits(b)
	}
}

// numberPattern splits a text into numbers and what is between them.
var numberPattern = regexp.MustCompile(`[0-9]+|[^0-9]+`)

// difference returns the first lines in which two texts differ, part by part.
func difference(a, b string, alike func(a, b string) bool) (lineA, lineB string, differ bool) {
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(linesA), len(linesB)) {
		textA, textB := lineOr(linesA, i), lineOr(linesB, i)
		partsA, partsB := numberPattern.FindAllString(textA, -1), numberPattern.FindAllString(textB, -1)
		if !slices.EqualFunc(partsA, partsB, alike) {
			return cmp.Or(sqltext.Shortened(textA), "nothing"), cmp.Or(sqltext.Shortened(textB), "nothing"), true
		}
	}
	return "", "", false
}

func lineOr(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
