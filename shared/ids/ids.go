// Package ids holds the identifiers of Signalbox: their form, and a type for each kind.
// An account's id cannot be passed as a workspace id. An id does not contain its owner.
package ids

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// Each identifier is a lower-case canonical UUID (8-4-4-4-12, any version).
type (
	// Account names one customer.
	Account string
	// Workspace names one workspace of an account.
	Workspace string
	// Credential names one stored provider credential.
	Credential string
	// Job names one directory sync job.
	Job string
)

// File names one file of a workspace: "file_" and 1 to 200 of A-Z a-z 0-9 _ -.
// Such an id needs no escaping in a URL or in an S3 key.
type File string

// KeyHash is the lower-case hex SHA-256 of a whole API key: it names a key wherever the
// key must not be shown. Keys hold 256 random bits (see auth.NewToken), so nobody can guess
// a key from its hash.
type KeyHash string

// An API key is the prefix and random characters of base64url, as .github/SECURITY.md publishes
// it. The prefix lets people and scanners of leaked secrets recognise a key.
const (
	APIKeyPrefix = "sbx_"
	APIKeyRandom = 43
)

// Short is the prefix of the hash by which logs name a key.
func (h KeyHash) Short() string { return string(h[:min(len(h), shortHash)]) }

const (
	uuidLength    = 36
	shortHash     = 12
	filePrefix    = "file_"
	fileNameBytes = 200
)

// Parse reads a UUID of the kind the caller asks for. Upper-case hex is
// accepted and returned in lower case; braces, "urn:" and missing dashes are
// not. ok is false, and the id empty, for anything else.
func Parse[ID ~string](s string) (id ID, ok bool) {
	if len(s) != uuidLength {
		return "", false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return "", false
			}
		default:
			if !isHex(s[i]) {
				return "", false
			}
		}
	}
	return ID(strings.ToLower(s)), true
}

// New makes a random UUID (version 4, 122 random bits).
func New[ID ~string]() ID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return ID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}

// ParseFile reads a file id. It decodes nothing and is case-sensitive.
func ParseFile(s string) (File, bool) {
	name, ok := strings.CutPrefix(s, filePrefix)
	if !ok || name == "" || len(name) > fileNameBytes {
		return "", false
	}
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && c != '_' && c != '-' {
			return "", false
		}
	}
	return File(s), true
}

// NewFile makes a file id with 128 random bits.
func NewFile() File {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return File(filePrefix + hex.EncodeToString(b[:]))
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
