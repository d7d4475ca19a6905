package main

import (
	"context"
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

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// masked is a provider key; the test itself has no copy.
type masked struct {
	kit.Masked
	name string
}

// body writes the key in place of each KEY and, escaped, of each ESCAPED.
func (m masked) body(template string) []byte {
	body := make([]byte, 0, len(template)+10*len(m.Masked)*6) // never grown, because growing copies
	for template != "" {
		switch {
		case strings.HasPrefix(template, "KEY"):
			body, template = m.Append(body), template[len("KEY"):]
		case strings.HasPrefix(template, "ESCAPED"):
			body, template = m.AppendEscaped(body), template[len("ESCAPED"):]
		default:
			body, template = append(body, template[0]), template[1:]
		}
	}
	return body
}

// refusing is storage that has no workspace and cannot seal.
type refusing struct{ *fakeStore }

func (refusing) Next(context.Context, ids.Account, ids.Workspace, string, int64) (auth.Position, error) {
	return auth.Position{}, auth.ErrNoWorkspace
}

func (refusing) GenerateDataKey(context.Context, *kms.GenerateDataKeyInput, ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error) {
	return nil, errors.New("no data key")
}

// After the answer the heap has no copy of a provider key that our code made,
// not even as garbage. The key may be anywhere in the body, and in any
// spelling.
func TestNoCopyOfAProviderKeyIsLeft(t *testing.T) {
	if !kit.Uninterrupted(t) {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // collected memory might have held one
	m := newFakeStore()
	broken := refusing{newFakeStore()}
	function := func(store *byok.Store, p positions) lambda.Handler {
		return api.Handler(auth.NewVerifier(m, "access"), slog.New(slog.NewJSONHandler(io.Discard, nil)),
			operation(handler{workspaces: m, positions: p, keyring: m, credentials: store}))
	}
	working, withoutWorkspace := function(m.Store, m), function(m.Store, broken)
	failing := function(byok.NewStore(m, "credentials", "control", seal.NewSealer(broken, "arn")), m)

	const unrepeatable = "created without an idempotency key"
	const plain, escaped = `{"key":"KEY","provider":"openai","name":"n"}`, `{"name":"n","key":"ESCAPED","provider":"openai"}`
	var keys []masked
	for _, c := range []struct {
		name     string
		function lambda.Handler
		status   int
		bodies   []string // under one idempotency key; the last is answered with status
	}{
		{unrepeatable, working, http.StatusCreated, []string{plain}},
		{"created", working, http.StatusCreated, []string{plain}},
		{"created, escaped", working, http.StatusCreated, []string{escaped}},
		{"replayed", working, http.StatusCreated, []string{plain, plain}},
		{"replayed, escaped", working, http.StatusCreated, []string{plain, escaped}},
		{"different request", working, http.StatusBadRequest, []string{plain, `{"key":"KEYKEY","provider":"openai"}`}},
		{"unknown member", working, http.StatusBadRequest, []string{`{"key":"KEY","provider":"openai","models":"KEY"}`}},
		{"as a name", working, http.StatusBadRequest, []string{`{"KEY":"KEY","ESCAPED":"KEY"}`}},
		{"as an escaped name without a value", working, http.StatusBadRequest, []string{`{"ESCAPED":`}},
		{"duplicate member", working, http.StatusBadRequest, []string{`{"key":"KEY","key":"ESCAPED","provider":"openai"}`}},
		{"unpaired surrogate", working, http.StatusBadRequest, []string{`{"key":"KEY\ud800ESCAPED","provider":"openai"}`}},
		{"invalid UTF-8", working, http.StatusBadRequest, []string{`{"key":"KEY` + strings.Repeat("\xff", 4000) + `","provider":"openai"}`}},
		{"as an escaped nested name, cut off", working, http.StatusBadRequest, []string{`{"provider":"openai","key":{"a":[{"b":1,"ESCAPED":`}},
		{"cut off, escaped", working, http.StatusBadRequest, []string{`{"provider":"openai","key":"ESCAPED`}},
		{"trailing data", working, http.StatusBadRequest, []string{plain + `"KEY"`}},
		{"no workspace", withoutWorkspace, http.StatusBadRequest, []string{plain}},
		{"no data key", failing, http.StatusInternalServerError, []string{escaped}},
	} {
		for _, length := range []int{40, 1000} {
			key := masked{kit.NewMasked(length), fmt.Sprintf("%s, %d bytes", c.name, length)}
			keys = append(keys, key)
			var status int
			for _, body := range c.bodies {
				idempotencyKey := key.name
				if c.name == unrepeatable {
					idempotencyKey = ""
				}
				status = sendWiped(t, c.function, key.body(body), idempotencyKey)
			}
			if status != c.status {
				t.Errorf("%s: status %d, want %d", key.name, status, c.status)
			}
		}
	}

	kept := kit.NewMasked(40)
	held := kept.Append(nil)
	dump := kit.Heap(t)
	if kept.Copies(dump) == 0 {
		t.Fatal("the dump of the heap shows nothing")
	}
	clear(held)
	for _, key := range keys {
		if n := key.Copies(dump); n > 0 {
			t.Errorf("%s: %d copies are left", key.name, n)
		}
	}
}

// sendWiped sends a request in base64 and leaves no copy.
func sendWiped(t *testing.T, function lambda.Handler, body []byte, idempotencyKey string) (status int) {
	t.Helper()
	header := `"Authorization":["Bearer ` + onlyKey + `"],"Content-Type":["application/json"]`
	if idempotencyKey != "" {
		header += `,"Idempotency-Key":["` + strings.ReplaceAll(idempotencyKey, " ", "-") + `"]`
	}
	start := `{"resource":"/api/v1/byok","httpMethod":"POST","multiValueHeaders":{` + header + `},"isBase64Encoded":true,"body":"`
	event := append(make([]byte, 0, len(start)+2*len(body)+100), start...)
	event = append(base64.StdEncoding.AppendEncode(event, body), `"}`...)
	clear(body)
	payload, err := function.Invoke(t.Context(), event)
	kit.Must(t, err)
	_, err = fmt.Sscanf(string(payload), `{"statusCode":%d`, &status)
	kit.Must(t, err)
	return status
}
