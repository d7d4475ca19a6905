package api_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
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
