package auth

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"signalbox.dev/shared/secret"
)

// KeyHash is the lower-case hex SHA-256 of a whole API key: the name a key has
// wherever it must not be shown. Keys hold 256 random bits (see NewToken), so a
// plain hash cannot be guessed backwards.
type KeyHash string

// Short is the prefix of the hash by which logs name a key.
func (h KeyHash) Short() string { return string(h[:min(len(h), shortHash)]) }

const (
	scheme    = "bearer"
	maxToken  = 256
	shortHash = 12
)

// Bearer is the API key a request came with, not yet looked up.
type Bearer struct {
	token secret.Bytes
	hash  KeyHash
}

// ParseBearer reads the values of all Authorization headers of a request:
// exactly one, "Bearer" in any case, spaces, then 1 to 256 characters of the
// b64token of RFC 6750, section 2.1. The error is a *Rejection, Missing or
// Malformed.
func ParseBearer(headers []string) (Bearer, error) {
	if len(headers) == 0 {
		return Bearer{}, &Rejection{Reason: Missing}
	}
	if len(headers) > 1 {
		return Bearer{}, &Rejection{Reason: Malformed}
	}
	given, rest, _ := strings.Cut(headers[0], " ")
	token := strings.TrimLeft(rest, " ")
	if !strings.EqualFold(given, scheme) || !isToken(token) {
		return Bearer{}, &Rejection{Reason: Malformed}
	}
	return Bearer{token: secret.New([]byte(token)), hash: HashKey(token)}, nil
}

// HashKey names the API key.
func HashKey(token string) KeyHash {
	sum := sha256.Sum256([]byte(token))
	return KeyHash(hex.EncodeToString(sum[:]))
}

// Hash names the key.
func (b Bearer) Hash() KeyHash { return b.hash }

// Derive makes a 32-byte key from the token for the purpose that info names
// (HKDF-SHA256). Whoever holds only the stored hash cannot make it.
func (b Bearer) Derive(info string) ([]byte, error) {
	return hkdf.Key(sha256.New, b.token.Reveal(), nil, info, sha256.Size)
}

// isToken reports whether s is a b64token of acceptable length.
func isToken(s string) bool {
	body := strings.TrimRight(s, "=")
	if body == "" || len(s) > maxToken {
		return false
	}
	for i := range len(body) {
		switch c := body[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case strings.IndexByte("-._~+/", c) >= 0:
		default:
			return false
		}
	}
	return true
}
