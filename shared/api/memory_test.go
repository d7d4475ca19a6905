package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/enginetest"
)

func TestTheBodyIsGoneAfterTheAnswer(t *testing.T) {
	const sent = `{"a":"sk-secret"}`
	for _, encoded := range []bool{false, true} {
		var kept *api.Request
		op := api.Operation{Prepare: func(_ context.Context, r *api.Request) api.Act {
			kept = r
			return func(context.Context, auth.Caller) (api.Response, error) {
				if got := r.Object("a").Text("a"); got != "sk-secret" {
					t.Errorf("base64 %v: read %q", encoded, got)
				}
				return api.Response{Status: 200}, nil
			}
		}}
		e := event(standardToken)
		e["body"], e["isBase64Encoded"] = sent, encoded
		if encoded {
			e["body"] = base64.StdEncoding.EncodeToString([]byte(sent))
		}
		run(t, op, e)
		if got := kept.Object("a").Text("a"); got != "" {
			t.Errorf("base64 %v: %q is still in memory", encoded, got)
		}
	}
}

// Nothing of a body stays in memory, of an event that cannot be read either. The
// heap is searched for it: the one copy that may be there is the test's own.
func TestNoCopyOfTheBodyStays(t *testing.T) {
	for name, c := range map[string]struct {
		encoded bool
		rest    string
	}{
		"read":         {false, `"}`},
		"repeated":     {false, `","body":""}`},
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
		h := api.Handler(auth.NewVerifier(keyTable{}, "access"), slog.New(slog.DiscardHandler), api.Operation{})
		if _, err := h.Invoke(t.Context(), payload); err != nil {
			t.Fatal(err)
		}
		if n := copies(t, body); n != 1 {
			t.Errorf("%s: %d copies in memory", name, n)
		}
	}
}

// copies counts how often the heap holds the text.
func copies(t *testing.T, text []byte) int {
	t.Helper()
	heap := enginetest.Heap(t)
	defer clear(heap)
	return bytes.Count(heap, text)
}

func TestNoMoreThanAHundredIssuesAreTold(t *testing.T) {
	issues := make([]api.Issue, 101)
	_, _, body, _ := run(t, api.Operation{Prepare: acting(api.Response{}, api.Invalid(issues))}, event(standardToken))
	if n := strings.Count(body, `"path"`); n != 100 {
		t.Errorf("%d issues are told, want 100", n)
	}
}

// Whoever has to find the fault behind a 500 needs to know where it was.
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
		_, _, _, log := run(t, api.Operation{Prepare: c.prepare}, event(standardToken))
		said, _ := log[0]["error"].(map[string]any)
		stack, _ := log[0]["stack"].(string)
		if said["text"] != c.what || !strings.Contains(stack, "api_test."+c.place) {
			t.Errorf("%s: %v", name, log[0])
		}
	}
}
