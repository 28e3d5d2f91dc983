package drift

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Differences returns the lines that only one of two structures has, "- …" for the first and "+ …" for the second, sorted by
// their keys.
func Differences(main, odd Structure) []string {
	removed, added := without(main, odd), without(odd, main)
	removed, added = dropShifts(removed, added)
	type entry struct{ key, sign, text string }
	var entries []entry
	for _, l := range removed {
		entries = append(entries, entry{l.Key, "-", l.Text})
	}
	for _, l := range added {
		entries = append(entries, entry{l.Key, "+", l.Text})
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(b.sign, a.sign)) // - before +, which are the other way round in ASCII
	})
	texts := make([]string, len(entries))
	for i, e := range entries {
		text := e.text
		switch {
		case i > 0 && entries[i-1].key == e.key:
			text = shorten(e.key, text, entries[i-1].text)
		case i+1 < len(entries) && entries[i+1].key == e.key:
			text = shorten(e.key, text, entries[i+1].text)
		}
		texts[i] = e.sign + " " + oneLine(text)
	}
	return texts
}

// without returns the lines of a that are not in b. It counts duplicates.
func without(a, b Structure) Structure {
	count := map[string]int{}
	for _, l := range b {
		count[l.Text]++
	}
	var rest Structure
	for _, l := range a {
		if count[l.Text]--; count[l.Text] < 0 {
			rest = append(rest, l)
		}
	}
	return rest
}

// shorten returns the first line in which a text differs from another; a text of one line unchanged.
func shorten(key, text, other string) string {
	lines, others := strings.Split(text, "\n"), strings.Split(other, "\n")
	if len(lines) == 1 && len(others) == 1 {
		return text
	}
	for i, line := range lines {
		if i >= len(others) || line != others[i] {
			return key + ": " + strings.TrimSpace(line)
		}
	}
	return key + ": ends after " + strings.TrimSpace(lines[len(lines)-1])
}

// oneLine joins the lines of a text.
func oneLine(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " ")
}

var positionPattern = regexp.MustCompile(` /\* column [0-9]+ \*/$`)

// dropShifts drops columns that differ only by their position, in tables that differ by another column.
func dropShifts(removed, added Structure) (Structure, Structure) {
	base := func(l Line) string { return positionPattern.ReplaceAllString(l.Text, "") }
	table := func(l Line) string { return l.Key[:strings.LastIndexByte(l.Key, '.')+1] }
	column := func(l Line) bool { return strings.HasPrefix(l.Key, "column ") }
	count := func(s Structure) map[string]bool {
		found := map[string]bool{}
		for _, l := range s {
			found[base(l)] = true
		}
		return found
	}
	inRemoved, inAdded := count(removed), count(added)
	shifted := func(l Line) bool { return column(l) && inRemoved[base(l)] && inAdded[base(l)] }
	changed := map[string]bool{}
	for _, l := range slices.Concat(removed, added) {
		if column(l) && !shifted(l) {
			changed[table(l)] = true
		}
	}
	drop := func(l Line) bool { return shifted(l) && changed[table(l)] }
	return slices.DeleteFunc(removed, drop), slices.DeleteFunc(added, drop)
}
