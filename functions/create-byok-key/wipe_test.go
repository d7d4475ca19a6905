package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/enginetest"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// fragment is how many characters of a provider key make a copy of it.
const fragment = 16

// masked is a provider key of a test's own that it can write and search for
// without having a copy.
type masked struct {
	name string
	key  []byte // every byte with its bits turned over
}

func newMasked(name string, length int) masked {
	m := masked{name, make([]byte, length)}
	_, _ = rand.Read(m.key)
	for i, b := range m.key {
		m.key[i] = ^('a' + b%26)
	}
	return m
}

// appendPlain and appendEscaped write the key as a JSON string's content.
func (m masked) appendPlain(to []byte) []byte {
	for _, b := range m.key {
		to = append(to, ^b)
	}
	return to
}

func (m masked) appendEscaped(to []byte) []byte {
	for _, b := range m.key {
		const digits = "0123456789abcdef"
		to = append(to, '\\', 'u', '0', '0', digits[^b>>4], digits[^b&15])
	}
	return to
}

// body writes the key in place of each KEY and, escaped, of each ESCAPED.
func (m masked) body(template string) []byte {
	body := make([]byte, 0, len(template)+10*len(m.key)*6)
	for template != "" {
		switch {
		case strings.HasPrefix(template, "KEY"):
			body, template = m.appendPlain(body), template[len("KEY"):]
		case strings.HasPrefix(template, "ESCAPED"):
			body, template = m.appendEscaped(body), template[len("ESCAPED"):]
		default:
			body, template = append(body, template[0]), template[1:]
		}
	}
	return body
}

// copies counts fragments of the key, as it is and as it may be spelt, in the
// dump of a heap: a few from all over it.
func (m masked) copies(dump []byte) (found int) {
	plain, escaped := m.appendPlain(nil), m.appendEscaped(nil)
	for at := 0; at+fragment <= len(m.key); at += max(fragment, len(m.key)/4) {
		found += bytes.Count(dump, plain[at:at+fragment]) + bytes.Count(dump, escaped[6*at:6*(at+fragment)])
	}
	return found
}

// refuser is storage that knows no workspace and cannot seal.
type refuser struct{ *memory }

func (refuser) Claim(context.Context, ids.Account, ids.Workspace, string) (int64, error) {
	return 0, auth.ErrNoWorkspace
}

func (refuser) GenerateDataKey(context.Context, *kms.GenerateDataKeyInput, ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error) {
	return nil, errors.New("no data key")
}

// No copy of a provider key that our code made is left on the heap after the
// answer, garbage included, wherever the key stood and however it was spelt.
func TestNoCopyOfAProviderKeyIsLeft(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // what was collected might have held one
	m := newMemory()
	broken := refuser{newMemory()}
	function := func(store *byok.Store, p positions) lambda.Handler {
		return api.Handler(auth.NewVerifier(m, "access"), slog.New(slog.NewJSONHandler(io.Discard, nil)),
			operation(handler{workspaces: m, positions: p, keyring: m, credentials: store}))
	}
	working, refusing := function(m.Store, m), function(m.Store, broken)
	failing := function(byok.NewStore(m, "credentials", "control", seal.NewSealer(broken, "arn")), m)

	const plain, escaped = `{"key":"KEY","provider":"openai","name":"n"}`, `{"name":"n","key":"ESCAPED","provider":"openai"}`
	var keys []masked
	for _, c := range []struct {
		name     string
		function lambda.Handler
		status   int
		bodies   []string // under one idempotency key, the last answered with status
	}{
		{"created", working, http.StatusCreated, []string{plain}},
		{"created, escaped", working, http.StatusCreated, []string{escaped}},
		{"replayed", working, http.StatusCreated, []string{plain, plain}},
		{"replayed, respelt", working, http.StatusCreated, []string{plain, escaped}},
		{"another request", working, http.StatusBadRequest, []string{plain, `{"key":"KEYKEY","provider":"openai"}`}},
		{"unknown member", working, http.StatusBadRequest, []string{`{"key":"KEY","provider":"openai","models":"KEY"}`}},
		{"as a name", working, http.StatusBadRequest, []string{`{"KEY":"KEY","ESCAPED":"KEY"}`}},
		{"as a name without a value", working, http.StatusBadRequest, []string{`{"provider":"openai","KEY"}`}},
		{"as an escaped name without a value", working, http.StatusBadRequest, []string{`{"ESCAPED":`}},
		{"twice", working, http.StatusBadRequest, []string{`{"key":"KEY","key":"ESCAPED","provider":"openai"}`}},
		{"mangled", working, http.StatusBadRequest, []string{`{"key":"KEY\ud800ESCAPED","provider":"openai"}`}},
		{"in an array", working, http.StatusBadRequest, []string{`{"key":["KEY","ESCAPED"],"provider":["KEY"]}`}},
		{"in an object", working, http.StatusBadRequest, []string{`{"key":{"KEY":["ESCAPED",{"a":"KEY"}]}}`}},
		{"cut off", working, http.StatusBadRequest, []string{`{"provider":"openai","key":"KEY`}},
		{"cut off, escaped", working, http.StatusBadRequest, []string{`{"provider":"openai","key":"ESCAPED`}},
		{"not quoted", working, http.StatusBadRequest, []string{`{"key":KEY}`}},
		{"behind the object", working, http.StatusBadRequest, []string{plain + `"KEY"`}},
		{"no object", working, http.StatusBadRequest, []string{`"KEY"`}},
		{"no workspace", refusing, http.StatusBadRequest, []string{plain}},
		{"no data key", failing, http.StatusInternalServerError, []string{escaped}},
	} {
		for _, once := range []bool{false, true} {
			if !once && len(c.bodies) > 1 {
				continue
			}
			for _, length := range []int{40, 1000} {
				key := newMasked(fmt.Sprintf("%s, once %v, %d bytes", c.name, once, length), length)
				keys = append(keys, key)
				var status int
				for _, body := range c.bodies {
					status = sendWiped(t, c.function, key.body(body), map[bool]string{true: key.name}[once])
				}
				if status != c.status {
					t.Errorf("%s: status %d, want %d", key.name, status, c.status)
				}
			}
		}
	}

	kept := newMasked("kept by the test", 40)
	held := kept.body("KEY")
	dump := enginetest.Heap(t)
	if kept.copies(dump) == 0 {
		t.Fatal("the dump of the heap shows nothing")
	}
	clear(held)
	for _, key := range keys {
		if n := key.copies(dump); n > 0 {
			t.Errorf("%s: %d fragments are left", key.name, n)
		}
	}
}

// sendWiped plays a request and leaves nothing of it in memory itself. Half of
// them come in base64.
func sendWiped(t *testing.T, function lambda.Handler, body []byte, idempotencyKey string) (status int) {
	t.Helper()
	header := `"Authorization":["Bearer ` + onlyKey + `"],"Content-Type":["application/json"]`
	if idempotencyKey != "" {
		header += `,"Idempotency-Key":["` + strings.ReplaceAll(idempotencyKey, " ", "-") + `"]`
	}
	start := `{"resource":"/api/v1/byok","httpMethod":"POST","multiValueHeaders":{` + header + `},"isBase64Encoded":`
	event := append(make([]byte, 0, len(start)+2*len(body)+100), start...)
	if len(body)%2 == 0 {
		event = append(base64.StdEncoding.AppendEncode(append(event, `true,"body":"`...), body), `"}`...)
	} else {
		event = append(event, `false,"body":"`...)
		for _, b := range body {
			if b == '"' || b == '\\' {
				event = append(event, '\\')
			}
			event = append(event, b)
		}
		event = append(event, `"}`...)
	}
	clear(body)
	payload, err := function.Invoke(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Sscanf(string(payload), `{"statusCode":%d`, &status)
	if err != nil {
		t.Fatal(err)
	}
	return status
}
