//go:build !unix

package program

import "os"

// stopping has no signals: there are none that end or stop a program from its terminal, other than Ctrl-C.
var stopping []os.Signal
