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
	a.id = byok.NewRequestID(string(r.Key()), key)
	var err error
	a.earlier, err = c.Recall(ctx, a.id)
	return a, err
}

// replayed returns the response to the earlier request. If there was none, ok is false.
func (a *attempt) replayed(body *api.Object) (response api.Response, ok bool, err error) {
	if a.id == "" {
		return api.Response{}, false, nil
	}
	derived, err := a.request.Bearer().Derive(derivation)
	if err != nil {
		return api.Response{}, false, fmt.Errorf("deriving the fingerprint's key: %w", err)
	}
	defer clear(derived)
	a.fingerprint = byok.Fingerprint(derived, body.Feed)
	return a.replay(a.earlier)
}

// refuse answers 400 for problems found in storage. A copy of this request may have been
// stored since, and have caused them: then it replays the 201 of the copy. damage, if there
// is any, is logged.
func (a *attempt) refuse(ctx context.Context, problems []issues.Issue, damage error) (api.Response, error) {
	if a.id != "" {
		faster, err := a.credentials.Recall(ctx, a.id)
		if err != nil {
			return api.Response{}, err
		}
		if response, ok, err := a.replay(faster); ok || err != nil {
			return response, err
		}
	}
	return api.Response{}, api.Invalid(problems...).Because(damage)
}

// commit stores the credential and answers 201. If another request under the same key was
// stored first, it stores nothing and replays that one's 201.
func (a *attempt) commit(ctx context.Context, draft byok.Draft) (response api.Response, err error) {
	answer := api.JSON(newBody(draft.Credential))
	var faster byok.Remembered
	if a.id == "" {
		err = a.credentials.Create(ctx, draft)
	} else {
		faster, err = a.credentials.CreateOnce(ctx, draft, a.id, a.fingerprint, answer)
	}
	if err == nil {
		if response, ok, err := a.replay(faster); ok || err != nil {
			return response, err
		}
	}
	note(a.request, draft.Workspace, draft.ID)
	return created(answer), err
}

// replay returns the response to another request under this idempotency key. If there is
// none, ok is false.
func (a *attempt) replay(other byok.Remembered) (response api.Response, ok bool, err error) {
	replayed, ok, err := other.Replay(a.fingerprint)
	if errors.Is(err, byok.ErrDifferentRequest) {
		return api.Response{}, false, api.Invalid(issues.Issue{Reason: issues.KeyReused, Message: "Idempotency-Key was used for a different request"})
	}
	if !ok {
		return api.Response{}, false, err
	}
	note(a.request, replayed.Workspace, replayed.Credential)
	a.request.Note(slog.Bool("replayed", true))
	response = created(replayed.Response)
	response.Header = map[string]string{"Idempotent-Replayed": "true"}
	return response, true, nil
}
