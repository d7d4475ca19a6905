package auth_test

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"signalbox.dev/shared/auth"
)

func TestParseBearerAccepts(t *testing.T) {
	for header, token := range map[string]string{
		"Bearer sbx_abc":                      "sbx_abc",
		"bearer sbx_abc":                      "sbx_abc",
		"BEARER sbx_abc":                      "sbx_abc",
		"Bearer   sbx_abc":                    "sbx_abc",
		"Bearer A0-._~+/":                     "A0-._~+/",
		"Bearer abc==":                        "abc==",
		"Bearer " + strings.Repeat("a", 256):  strings.Repeat("a", 256),
		"Bearer a" + strings.Repeat("=", 255): "a" + strings.Repeat("=", 255),
	} {
		b, err := auth.ParseBearer([]string{header})
		sum := sha256.Sum256([]byte(token))
		if want := auth.KeyHash(hex.EncodeToString(sum[:])); err != nil || b.Hash() != want {
			t.Errorf("%q: hash %s, %v; want %s", header, b.Hash(), err, want)
		}
	}
}

func TestParseBearerRefuses(t *testing.T) {
	malformed := map[string][]string{
		"empty":             {""},
		"scheme alone":      {"Bearer"},
		"no token":          {"Bearer "},
		"other scheme":      {"Basic abc"},
		"no scheme":         {"sbx_abc"},
		"tab":               {"Bearer\tabc"},
		"leading space":     {" Bearer abc"},
		"trailing space":    {"Bearer abc "},
		"two tokens":        {"Bearer abc def"},
		"comma":             {"Bearer abc,def"},
		"quoted":            {`Bearer "abc"`},
		"equals first":      {"Bearer =abc"},
		"equals inside":     {"Bearer a=bc"},
		"only equals":       {"Bearer =="},
		"not ASCII":         {"Bearer ключ"},
		"control character": {"Bearer ab\x00c"},
		"newline":           {"Bearer abc\n"},
		"too long":          {"Bearer " + strings.Repeat("a", 257)},
		"two headers":       {"Bearer abc", "Bearer abc"},
		"second empty":      {"Bearer abc", ""},
	}
	for name, headers := range malformed {
		mustReject(t, name, headers, auth.Malformed)
	}
	mustReject(t, "no header", nil, auth.Missing)
}

func mustReject(t *testing.T, name string, headers []string, want auth.Reason) {
	t.Helper()
	_, err := auth.ParseBearer(headers)
	rejection, ok := errors.AsType[*auth.Rejection](err)
	if !ok || rejection.Reason != want {
		t.Errorf("%s: %v, want %s", name, err, want)
	}
}

// The derived key must not be computable from what is stored. HMAC replaces a
// key longer than its block by the SHA-256 of it, which for a bearer token is
// exactly the stored hash: a long token is what tells the two apart.
func TestDeriveNeedsMoreThanTheStoredHash(t *testing.T) {
	token := strings.Repeat("k", 73)
	b, err := auth.ParseBearer([]string{"Bearer " + token})
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Derive("signalbox/idempotency/v1")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := hex.DecodeString(string(b.Hash()))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, stored) {
		t.Error("the derived key is the stored hash")
	}
	want, err := hkdf.Key(sha256.New, []byte(token), nil, "signalbox/idempotency/v1", 32)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("derived %x, %v; want HKDF-SHA256 of the token, %x", got, err, want)
	}
	other, err := b.Derive("another purpose")
	if err != nil || bytes.Equal(got, other) {
		t.Errorf("two purposes derive one key (%v)", err)
	}
}

func TestBearerDoesNotPrint(t *testing.T) {
	b, err := auth.ParseBearer([]string{"Bearer sbx_marker"})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if out := fmt.Sprintf(format, b); strings.Contains(out, "sbx_marker") || strings.Contains(out, hex.EncodeToString([]byte("sbx_marker"))) {
			t.Errorf("%s prints %s", format, out)
		}
	}
}

// A header is accepted as the contract writes it, and the key is all of its token.
func FuzzParseBearer(f *testing.F) {
	for _, seed := range []string{
		"Bearer abc", "bearer  a==", "BEARER A0-._~+/", "Bearer a=b", "Bearer =", "Bearer abc ", "Bearer a b", "Bearer\ta",
		"Bearer " + strings.Repeat("a", 256), "Bearer " + strings.Repeat("a", 257), "Bearer \x00", "Basic x", "",
	} {
		f.Add(seed)
	}
	shape := regexp.MustCompile(`^(?i:bearer) +([A-Za-z0-9._~+/-]+=*)$`)
	f.Fuzz(func(t *testing.T, header string) {
		var want auth.KeyHash
		if found := shape.FindStringSubmatch(header); found != nil && len(found[1]) <= 256 {
			sum := sha256.Sum256([]byte(found[1]))
			want = auth.KeyHash(hex.EncodeToString(sum[:]))
		}
		b, err := auth.ParseBearer([]string{header})
		if b.Hash() != want || (err == nil) != (want != "") {
			t.Fatalf("%q is read as %q, %v; want %q", header, b.Hash(), err, want)
		}
	})
}
