package session

import "strings"

// schemasOf returns the schemas of a path that [shards.Map.SearchPath] has written, as the text of a Postgres array.
func schemasOf(path string) []byte {
	var all []string
	for len(path) > 0 {
		name, rest := firstSchema(path)
		all = append(all, name)
		path = strings.TrimPrefix(rest, ", ")
	}
	return arrayOf(all)
}

// firstSchema takes the first name off a path.
func firstSchema(path string) (name, rest string) {
	if path[0] != '"' {
		name, _, _ = strings.Cut(path, ",")
		return name, path[len(name):]
	}
	for i := 1; i < len(path); i++ {
		switch {
		case path[i] != '"':
			name += path[i : i+1]
		case strings.HasPrefix(path[i:], `""`):
			name += `"`
			i++
		default:
			return name, path[i+1:]
		}
	}
	return name, ""
}

// arrayOf returns names as the text of a Postgres array.
func arrayOf(names []string) []byte {
	array := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, '"')
		array = append(array, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name)...)
		array = append(array, '"')
	}
	return append(array, '}')
}
