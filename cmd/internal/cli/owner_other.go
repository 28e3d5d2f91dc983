//go:build !unix

package cli

import "os"

// othersOf returns nothing here: the owner of a file is known on Unix only.
func othersOf(os.FileInfo, func(string) (string, bool)) string { return "" }
