package sql

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// VersionMark begins the comment that holds the version of what a script installs; the [Version] follows.
const VersionMark = "kiloshard version "

// versionOf returns the version of a script: 16 hexadecimal digits of its SHA-256.
func versionOf(script string) string {
	sum := sha256.Sum256([]byte(script))
	return hex.EncodeToString(sum[:8])
}

// withVersion returns a script that also leaves a version as the comment of one of its objects, such as
// "FUNCTION shard_00042.next_id()". The comment lives and dies with the object, and is in its dumps.
func withVersion(script, object, version string) string {
	return script + "\nCOMMENT ON " + object + " IS '" + VersionMark + version + "';\n"
}

// Version returns the version that a rendered script leaves behind, or the one in a comment: the 16 digits, empty for
// none.
func Version(text string) string {
	_, version, ok := strings.Cut(text, VersionMark)
	if !ok || len(version) < 16 {
		return ""
	}
	return version[:16]
}
