package auth

import (
	"crypto/rand"
	"encoding/base64"

	"signalbox.dev/shared/secret"
)

const (
	// tokenPrefix lets people and scanners of leaked secrets recognise a key.
	tokenPrefix = "sbx_"
	// tokenBytes is why a plain SHA-256 of the whole key is enough: 256 random
	// bits cannot be guessed, however fast a guess can be tried.
	tokenBytes = 32
)

// NewToken makes an API key: the prefix and 43 characters of base64url.
func NewToken() secret.Bytes {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails: crypto/rand ends the process instead
	defer clear(random)
	return secret.New(base64.RawURLEncoding.AppendEncode([]byte(tokenPrefix), random))
}
