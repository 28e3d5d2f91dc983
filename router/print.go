package router

import (
	"fmt"
	"io"
)

// Format prints which map the router goes by, whatever the verb, so that no DSN is printed.
func (r *Router) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "router of "+r.Map().String()) }
