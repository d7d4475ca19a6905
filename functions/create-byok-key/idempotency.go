package main

import (
	"errors"
	"fmt"
	"log/slog"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/byok"
)

// derivation names what the bearer token is used for beyond being looked up.
const derivation = "signalbox/idempotency/v1"

const maxIdempotencyKey = 255

// idempotencyKey reads the header: absent, or once with 1 to 255 visible ASCII
// characters.
func idempotencyKey(r *api.Request) (key string, given bool, issue *api.Issue) {
	values := r.Header("Idempotency-Key")
	if len(values) == 0 {
		return "", false, nil
	}
	if len(values) > 1 || !isVisible(values[0]) {
		return "", true, &api.Issue{Message: "Idempotency-Key must be sent once, with 1 to 255 visible ASCII characters"}
	}
	return values[0], true, nil
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

// repeatable is a request that was sent under an idempotency key.
type repeatable struct {
	id          byok.RequestID
	earlier     byok.Remembered
	err         error // of looking for an earlier one
	fingerprint []byte
}

// replay answers a request that was answered before; ok is false for a new one.
func (p *repeatable) replay(r *api.Request, body *api.Object) (response api.Response, ok bool, err error) {
	if p.err != nil {
		return api.Response{}, false, p.err
	}
	derived, err := r.Bearer().Derive(derivation)
	if err != nil {
		return api.Response{}, false, fmt.Errorf("deriving the fingerprint's key: %w", err)
	}
	defer clear(derived)
	p.fingerprint = byok.Fingerprint(derived, body.Feed)
	return p.answer(r)
}

// answer is the answer to the earlier request, if there is one.
func (p *repeatable) answer(r *api.Request) (response api.Response, ok bool, err error) {
	body, ok, err := p.earlier.Replay(p.fingerprint)
	if errors.Is(err, byok.ErrDifferentRequest) {
		return api.Response{}, false, api.Invalid([]api.Issue{{Message: "Idempotency-Key was used for a different request"}})
	}
	if !ok {
		return api.Response{}, false, err
	}
	r.Note(slog.Bool("replayed", true))
	response = created(body)
	response.Header = map[string]string{"Idempotent-Replayed": "true"}
	return response, true, nil
}
