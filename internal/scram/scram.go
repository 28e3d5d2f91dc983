// Package scram makes what Postgres stores of a password.
package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// Verifier returns what Postgres stores for a password in ASCII with SCRAM-SHA-256 (RFC 5803), with a number of iterations.
func Verifier(password string, iterations int) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		panic("bug: scram: " + err.Error())
	}
	stored := sha256.Sum256(keyed(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode(salt), encode(stored[:]), encode(keyed(salted, "Server Key")))
}

func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(text)) // it never fails
	return mac.Sum(nil)
}
