package dsn

import "regexp"

// Variable matches a variable, with its name.
var Variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

var escapedVariable = regexp.MustCompile(`%24%7B([A-Za-z_][A-Za-z0-9_]*)%7D`)
