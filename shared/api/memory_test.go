package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
)

// No copy of a body stays in memory, of a refused event neither. The heap may
// contain one: the test's own.
func TestNoCopyOfTheBodyStays(t *testing.T) {
	if !testkit.Uninterrupted(t) {
		return
	}
	for name, c := range map[string]struct {
		encoded bool
		rest    string
	}{
		"handled":      {false, `","resource":"x","httpMethod":"GET","headers":{"Authorization":"Bearer ` + standardToken + `"}}`},
		"in base64":    {true, `","isBase64Encoded":true,"resource":"x","httpMethod":"GET","headers":{"Authorization":"Bearer ` + standardToken + `"}}`},
		"refused":      {false, `"}`},
		"duplicate":    {false, `","body":""}`},
		"wrong type":   {false, `","resource":1}`},
		"cut":          {false, ``},
		"no base64":    {false, `!","isBase64Encoded":true}`},
		"base64":       {true, `","isBase64Encoded":true}`},
		"wrong base64": {true, `!","isBase64Encoded":true}`},
	} {
		body := make([]byte, 24)
		for i := range body {
			body[i] = 'a' + rand.N[byte](26)
		}
		payload := append(make([]byte, 0, 1024), `{"body":"`...) // never grown, which would copy
		if c.encoded {
			payload = base64.StdEncoding.AppendEncode(payload, body)
		} else {
			payload = append(payload, body...)
		}
		payload = append(payload, c.rest...)
		h := api.Handler(auth.NewVerifier(keyTable{}, "access"), slog.New(slog.DiscardHandler), api.Operation{
			Method: http.MethodGet, Resource: "x", Prepare: acting(api.Response{Status: http.StatusOK}, nil),
		})
		_, err := h.Invoke(t.Context(), payload)
		testkit.Must(t, err)
		if n := copies(t, body); n != 1 {
			t.Errorf("%s: %d copies in memory", name, n)
		}
	}
}

// copies counts how often the heap holds the text.
func copies(t *testing.T, text []byte) int {
	t.Helper()
	heap := testkit.Heap(t)
	defer clear(heap)
	return bytes.Count(heap, text)
}

// An operator finds the cause of a 500 by its stack.
func TestAPanicIsLoggedWithItsPlace(t *testing.T) {
	none := []int{}
	for name, c := range map[string]struct {
		prepare     func(context.Context, *api.Request) api.Act
		what, place string
	}{
		"the runtime's": {func(context.Context, *api.Request) api.Act {
			return func(context.Context, auth.Caller) (api.Response, error) {
				none[0]++
				return api.Response{}, nil
			}
		}, "panic: runtime error: index out of range [0] with length 0", "TestAPanicIsLoggedWithItsPlace"},
		"any other":      {panickingAct, "panic: string", "panickingAct"},
		"in a side call": {panickingPrepare, "panic: *errors.errorString", "panickingPrepare"},
		"in a side call of a side call": {func(ctx context.Context, r *api.Request) api.Act {
			calls.Together(ctx, func(ctx context.Context) { panickingPrepare(ctx, r) })
			return nil
		}, "panic: *errors.errorString", "panickingPrepare"},
	} {
		line := run(t, api.Operation{Prepare: c.prepare}, event(standardToken)).Line
		said, _ := line["error"].(map[string]any)
		stack, _ := line["stack"].(string)
		if said["text"] != c.what || !strings.Contains(stack, "api_test."+c.place) {
			t.Errorf("%s: %v", name, line)
		}
	}
}
