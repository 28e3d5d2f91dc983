package sql

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// VersionMark precedes the [Version] in the comment of an object that a script installs.
const VersionMark = "kiloshard version "

// versionOf returns the version of a script: 16 hexadecimal digits of its SHA-256.
func versionOf(script string) string {
	sum := sha256.Sum256([]byte(script))
	return hex.EncodeToString(sum[:8])
}

// withVersion returns a script that also stores a version in the comment of one of its objects, such as
// "FUNCTION shard_00042.next_id()". Dropping the object drops the comment, and dumps include it.
func withVersion(script, object, version string) string {
	return script + "\nCOMMENT ON " + object + " IS '" + VersionMark + version + "';\n"
}

// Version returns the version in a rendered script or a comment: 16 digits, or empty if there is none.
func Version(text string) string {
	_, version, ok := strings.Cut(text, VersionMark)
	if !ok || len(version) < 16 {
		return ""
	}
	return version[:16]
}
