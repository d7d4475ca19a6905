package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/byok"
)

// derivation is the purpose of the key that is derived from the bearer token.
const derivation = "signalbox/idempotency/v1"

const maxIdempotencyKey = 255

// idempotencyKey returns the header's value, "" where it is absent.
func idempotencyKey(r *api.Request) (key string, issues []api.Issue) {
	switch values := r.Header("Idempotency-Key"); {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || !isVisible(values[0]):
		return "", []api.Issue{{
			Message: fmt.Sprintf("Idempotency-Key must be sent once, with 1 to %d visible ASCII characters", maxIdempotencyKey),
		}}
	default:
		return values[0], nil
	}
}

func isVisible(s string) bool {
	if s == "" || len(s) > maxIdempotencyKey {
		return false
	}
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return true
}

// idempotent is a request under an idempotency key. It replays the response to an
// earlier one, or stores its own.
type idempotent struct {
	credentials credentials
	request     *api.Request
	id          byok.RequestID
	earlier     byok.Remembered
	err         error // of the look-up of an earlier one
}

func newIdempotent(ctx context.Context, c credentials, r *api.Request, key string) idempotent {
	i := idempotent{credentials: c, request: r, id: byok.NewRequestID(string(r.Key()), key)}
	i.earlier, i.err = c.Recall(ctx, i.id)
	return i
}

// create replays the response to the same request, or stores the draft that place
// returns.
func (i idempotent) create(ctx context.Context, body *api.Object, place func() (byok.Draft, []byok.Problem, error)) (api.Response, error) {
	if i.err != nil {
		return api.Response{}, i.err
	}
	fingerprint, err := i.fingerprint(body)
	if err != nil {
		return api.Response{}, err
	}
	if replayed, ok, err := i.replay(i.earlier, fingerprint); ok || err != nil {
		return replayed, err
	}
	draft, problems, err := place()
	if err != nil {
		return api.Response{}, err
	}
	if len(problems) > 0 {
		// A copy of this request, sent at the same time, either was faster, and this one
		// replays its 201; or it meets this refusal when it would store a credential.
		faster, err := i.credentials.Refuse(ctx, i.id, i.earlier, fingerprint, problems)
		if err != nil {
			return api.Response{}, err
		}
		if replayed, ok, err := i.replay(faster, fingerprint); ok || err != nil {
			return replayed, err
		}
		return api.Response{}, invalid(problems)
	}
	answer := api.JSON(newBody(draft.Credential))
	faster, err := i.credentials.CreateOnce(ctx, draft, i.id, i.earlier, fingerprint, answer)
	if err == nil {
		if replayed, ok, err := i.replay(faster, fingerprint); ok || err != nil {
			return replayed, err
		}
	}
	note(i.request, draft.Workspace, draft.ID)
	return created(answer), err
}

func (i idempotent) fingerprint(body *api.Object) ([]byte, error) {
	derived, err := i.request.Bearer().Derive(derivation)
	if err != nil {
		return nil, fmt.Errorf("deriving the fingerprint's key: %w", err)
	}
	defer clear(derived)
	return byok.Fingerprint(derived, body.Feed), nil
}

// replay returns the response to the earlier request; ok is false where there is
// none.
func (i idempotent) replay(earlier byok.Remembered, fingerprint []byte) (response api.Response, ok bool, err error) {
	replayed, ok, err := earlier.Replay(fingerprint)
	if errors.Is(err, byok.ErrDifferentRequest) {
		return api.Response{}, false, api.Invalid([]api.Issue{{Message: "Idempotency-Key was used for a different request"}})
	}
	if refusal, refused := errors.AsType[*byok.Refusal](err); refused {
		return api.Response{}, false, invalid(refusal.Problems)
	}
	if !ok {
		return api.Response{}, false, err
	}
	note(i.request, replayed.Workspace, replayed.Credential)
	i.request.Note(slog.Bool("replayed", true))
	response = created(replayed.Response)
	response.Header = map[string]string{"Idempotent-Replayed": "true"}
	return response, true, nil
}
