package login

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// NewPassword returns a random password in ASCII, of 128 bits or more.
func NewPassword() string { return rand.Text() }

// Verifier returns what Postgres stores for a password in ASCII with SCRAM-SHA-256 (RFC 5803), with one iteration. Iterations
// slow down guessing, and nobody can guess 128 random bits. They would take most of the time of a login.
func Verifier(password string) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, 1, sha256.Size)
	if err != nil {
		panic("bug: localpg: " + err.Error())
	}
	stored := sha256.Sum256(keyed(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", encode(salt), encode(stored[:]), encode(keyed(salted, "Server Key")))
}

func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(text)) // it never fails
	return mac.Sum(nil)
}
