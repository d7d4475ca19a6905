package auth_test

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// FuzzParseBearer compares the parser with the grammar as a regular expression. A
// key's hash is the hash of its whole token.
func FuzzParseBearer(f *testing.F) {
	for _, header := range []string{
		"Bearer sbx_abc", "bearer sbx_abc", "BEARER sbx_abc", "Bearer   sbx_abc", "Bearer A0-._~+/", "Bearer abc==",
		"Bearer " + strings.Repeat("a", 256), "Bearer a" + strings.Repeat("=", 255),
		"", "Bearer", "Bearer ", "Basic abc", "sbx_abc", "Bearer\tabc", " Bearer abc", "Bearer abc ", "Bearer abc def",
		"Bearer abc,def", `Bearer "abc"`, "Bearer =abc", "Bearer a=bc", "Bearer ==", "Bearer ключ", "Bearer ab\x00c",
		"Bearer abc\n", "Bearer " + strings.Repeat("a", 257),
	} {
		f.Add(header)
	}
	grammar := regexp.MustCompile(`^(?i:bearer) +([A-Za-z0-9._~+/-]+=*)$`)
	f.Fuzz(func(t *testing.T, header string) {
		var want ids.KeyHash
		if found := grammar.FindStringSubmatch(header); found != nil && len(found[1]) <= 256 {
			sum := sha256.Sum256([]byte(found[1]))
			want = ids.KeyHash(hex.EncodeToString(sum[:]))
		}
		b, err := auth.ParseBearer([]string{header})
		rejection, rejected := errors.AsType[*auth.Rejection](err)
		if b.Hash() != want || rejected != (want == "") || rejected && rejection.Reason != auth.Malformed {
			t.Fatalf("%q: hash %q, %v; want %q", header, b.Hash(), err, want)
		}
	})
}

func TestExactlyOneHeaderIsParsed(t *testing.T) {
	for want, headers := range map[auth.Reason][][]string{
		auth.Missing:   {nil},
		auth.Malformed: {{"Bearer abc", "Bearer abc"}, {"Bearer abc", ""}},
	} {
		for _, h := range headers {
			_, err := auth.ParseBearer(h)
			if rejection, ok := errors.AsType[*auth.Rejection](err); !ok || rejection.Reason != want {
				t.Errorf("%q: %v, want %s", h, err, want)
			}
		}
	}
}

// The derived key must not be computable from the stored hash. HMAC replaces a key
// longer than its block by the key's SHA-256. For a bearer token that is the stored
// hash, so this test uses a long token.
func TestDeriveNeedsMoreThanTheStoredHash(t *testing.T) {
	token := strings.Repeat("k", 73)
	b, err := auth.ParseBearer([]string{"Bearer " + token})
	if err != nil {
		t.Fatal(err)
	}
	for _, purpose := range []string{"signalbox/idempotency/v1", "another purpose"} {
		got, err := b.Derive(purpose)
		want, wantErr := hkdf.Key(sha256.New, []byte(token), nil, purpose, 32)
		if err != nil || wantErr != nil || !bytes.Equal(got, want) || hex.EncodeToString(got) == string(b.Hash()) {
			t.Errorf("derived %x, %v; want HKDF-SHA256 of the token, %x", got, err, want)
		}
	}
}

// Every token matches the pattern that SECURITY.md gives to secret scanners.
func TestTokens(t *testing.T) {
	page, err := os.ReadFile("../../.github/SECURITY.md")
	kit.Must(t, err)
	pattern := regexp.MustCompile(`(?m)^\\bsbx_.*$`).FindString(string(page))
	shape, seen := regexp.MustCompile(pattern), map[string]bool{}
	for range 1000 {
		token := string(auth.NewToken().Reveal())
		if shape.FindString("key="+token+",") != token || shape.FindString(token+"A") == token || seen[token] || len(token) != 47 {
			t.Fatalf("%s does not match %s, or came before", token, shape)
		}
		seen[token] = true
	}
}
