//go:build !unix

package cli

import "os"

// othersOf would say who but this user may write a file.
func othersOf(os.FileInfo, func(string) (string, bool)) string { return "" }
