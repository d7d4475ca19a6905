package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/issues"
)

// derivation is the purpose of the key that is derived from the bearer token.
const derivation = "signalbox/idempotency/v1"

const maxIdempotencyKey = 255

// requestID is the id of the request under its idempotency key, or "" if it has none.
func requestID(r *api.Request) (byok.RequestID, []issues.Issue) {
	switch values := r.Header("Idempotency-Key"); {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || !isVisible(values[0]):
		return "", []issues.Issue{{
			Reason:  issues.Invalid,
			Message: fmt.Sprintf("Idempotency-Key must be sent once, with 1 to %d visible ASCII characters", maxIdempotencyKey),
		}}
	default:
		return byok.NewRequestID(r.Key(), values[0]), nil
	}
}

func isVisible(s string) bool {
	invisible := func(r rune) bool { return r < '!' || r > '~' }
	return s != "" && len(s) <= maxIdempotencyKey && !strings.ContainsFunc(s, invisible)
}

// fingerprintOf identifies the body among the requests of this API key.
func fingerprintOf(r *api.Request, body *api.Object) ([]byte, error) {
	derived, err := r.Bearer().Derive(derivation)
	if err != nil {
		return nil, fmt.Errorf("deriving the fingerprint's key: %w", err)
	}
	defer clear(derived)
	return byok.Fingerprint(derived, body.Feed), nil
}

// createOnce stores the credential of a request under an idempotency key, or replays the 201
// of an earlier one. A copy of the request may be at work at the same time. If the copy is
// stored first, this request stores nothing, or storage refuses it because of the copy. So a
// refusal is returned only after one more look.
func (c creation) createOnce(ctx context.Context, id byok.RequestID, answer byok.Answer, fingerprint []byte) (api.Response, error) {
	if answer.Exists() {
		return c.replay(answer, fingerprint)
	}
	draft, err := c.draft(ctx)
	if _, refused := errors.AsType[*api.Error](err); refused {
		switch answer, findErr := c.credentials.FindAnswer(ctx, id); {
		case findErr != nil:
			return api.Response{}, findErr
		case answer.Exists():
			return c.replay(answer, fingerprint)
		}
	}
	if err != nil {
		return api.Response{}, err
	}
	response := created(draft)
	answer, err = c.credentials.CreateOnce(ctx, draft, id, fingerprint, response.Body)
	if answer.Exists() {
		return c.replay(answer, fingerprint)
	}
	c.note(draft.Workspace, draft.ID)
	if err != nil {
		return api.Response{}, err
	}
	return response, nil
}

// replay returns the stored answer, if it is the answer to this request.
func (c creation) replay(answer byok.Answer, fingerprint []byte) (api.Response, error) {
	if !answer.IsFor(fingerprint) {
		return api.Response{}, api.Invalid(issues.Issue{Reason: issues.KeyReused, Message: "Idempotency-Key was used for a different request"})
	}
	c.note(answer.Workspace, answer.Credential)
	c.request.Note(slog.Bool("replayed", true))
	return api.Response{
		Status: http.StatusCreated, Body: []byte(answer.Response), Header: map[string]string{"Idempotent-Replayed": "true"},
	}, nil
}
