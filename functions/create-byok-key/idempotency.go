package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/issues"
)

// derivation is the purpose of the key that is derived from the bearer token.
const derivation = "signalbox/idempotency/v1"

const maxIdempotencyKey = 255

// idempotencyKey returns the header's value, or "" if it is absent.
func idempotencyKey(r *api.Request) (key string, faults []issues.Issue) {
	switch values := r.Header("Idempotency-Key"); {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || !isVisible(values[0]):
		return "", []issues.Issue{{
			Reason:  issues.Invalid,
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

// attempt is a request and the record under its idempotency key. Without such a key there
// is no id and no record, and the request is never a replay.
type attempt struct {
	credentials credentials
	request     *api.Request
	id          byok.RequestID
	earlier     byok.Remembered
	fingerprint []byte
}

// newAttempt looks up an earlier request under the same idempotency key.
func newAttempt(ctx context.Context, c credentials, r *api.Request, key string) (attempt, error) {
	a := attempt{credentials: c, request: r}
	if key == "" {
		return a, nil
	}
	a.id = byok.NewRequestID(r.Key(), key)
	var err error
	a.earlier, err = c.Recall(ctx, a.id)
	return a, err
}

// begin returns the response to the earlier request, or ErrNotRemembered if there was none.
func (a *attempt) begin(body *api.Object) (api.Response, error) {
	if a.id == "" {
		return api.Response{}, byok.ErrNotRemembered
	}
	derived, err := a.request.Bearer().Derive(derivation)
	if err != nil {
		return api.Response{}, fmt.Errorf("deriving the fingerprint's key: %w", err)
	}
	defer clear(derived)
	a.fingerprint = byok.Fingerprint(derived, body.Feed)
	return a.replay(a.earlier)
}

// refuse answers the 400 for what storage shows. A copy of this request may have been stored
// since, and have caused it: then it replays the 201 of the copy.
func (a *attempt) refuse(ctx context.Context, refusal *api.Error) (api.Response, error) {
	if a.id == "" {
		return api.Response{}, refusal
	}
	since, err := a.credentials.Recall(ctx, a.id)
	if err != nil {
		return api.Response{}, err
	}
	if response, err := a.replay(since); !errors.Is(err, byok.ErrNotRemembered) {
		return response, err
	}
	return api.Response{}, refusal
}

// commit stores the credential and answers 201. If another request under the same key was
// stored first, it stores nothing and replays that one's 201.
func (a *attempt) commit(ctx context.Context, draft byok.Draft) (api.Response, error) {
	answer := api.JSON(newBody(draft.Credential))
	if a.id == "" {
		note(a.request, draft.Workspace, draft.ID)
		return created(answer), a.credentials.Create(ctx, draft)
	}
	first, err := a.credentials.CreateOnce(ctx, draft, a.id, a.fingerprint, answer)
	if err == nil {
		if response, err := a.replay(first); !errors.Is(err, byok.ErrNotRemembered) {
			return response, err
		}
	}
	note(a.request, draft.Workspace, draft.ID)
	return created(answer), err
}

// replay returns the response to another request under this idempotency key, or
// ErrNotRemembered if there is none.
func (a *attempt) replay(other byok.Remembered) (api.Response, error) {
	replayed, err := other.Replay(a.fingerprint)
	if errors.Is(err, byok.ErrDifferentRequest) {
		return api.Response{}, api.Invalid(issues.Issue{Reason: issues.KeyReused, Message: "Idempotency-Key was used for a different request"})
	}
	if err != nil {
		return api.Response{}, err
	}
	note(a.request, replayed.Workspace, replayed.Credential)
	a.request.Note(slog.Bool("replayed", true))
	response := created(replayed.Response)
	response.Header = map[string]string{"Idempotent-Replayed": "true"}
	return response, nil
}
