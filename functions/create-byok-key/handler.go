package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

type workspaces interface {
	// Default changes nothing and may be repeated.
	Default(context.Context, auth.Caller) (ids.Workspace, error)
}

type positions interface {
	// Claim fails where the workspace is not live; an error may leave a gap.
	Claim(ctx context.Context, account ids.Account, workspace ids.Workspace, provider string) (int64, error)
}

type keyring interface {
	// Owned changes nothing and may be repeated.
	Owned(context.Context, ids.Account, []auth.KeyHash) (map[auth.KeyHash]bool, error)
}

type credentials interface {
	// Seal and Recall change nothing and may be repeated.
	Seal(context.Context, ids.Account, ids.Workspace, byok.New) (byok.Draft, error)
	Recall(context.Context, byok.RequestID) (byok.Remembered, error)
	// Create and CreateOnce store everything or nothing; after an error everything
	// may be stored.
	Create(context.Context, byok.Draft) error
	CreateOnce(ctx context.Context, d byok.Draft, id byok.RequestID, fingerprint, response []byte) (byok.Remembered, error)
}

type handler struct {
	workspaces  workspaces
	positions   positions
	keyring     keyring
	credentials credentials
}

func operation(h handler) api.Operation {
	return api.Operation{
		ID:               "createByokKey",
		Method:           http.MethodPost,
		Resource:         "/api/v1/byok",
		StandardKeyError: api.Forbidden(),
		Audited:          true,
		Prepare:          h.prepare,
	}
}

// prepare looks up an earlier request under the same idempotency key, side by side
// with the look-up of the API key. Once the caller is known, Act checks the
// request by itself, then whether it is a replay, then against storage.
func (h handler) prepare(ctx context.Context, r *api.Request) api.Act {
	key, headerIssues := idempotencyKey(r)
	var once idempotent
	if key != "" {
		once = newIdempotent(ctx, h.credentials, r, key)
	}
	return func(ctx context.Context, caller auth.Caller) (api.Response, error) {
		object := r.Object(members...)
		n, named := decode(object)
		defer n.Key.Wipe()
		if issues := append(headerIssues, object.Issues()...); len(issues) > 0 {
			return api.Response{}, api.Invalid(issues)
		}
		place := func() (byok.Draft, error) { return h.place(ctx, caller, named, n) }
		if key != "" {
			return once.create(ctx, object, place)
		}
		draft, err := place()
		if err != nil {
			return api.Response{}, err
		}
		note(r, draft.Workspace, draft.ID)
		return created(api.JSON(newBody(draft.Credential))), h.credentials.Create(ctx, draft)
	}
}

// note adds the credential to the audit line: the one that the response names, or
// the one that may be stored, where storing it failed.
func note(r *api.Request, w ids.Workspace, c ids.Credential) {
	r.Note(slog.String("workspace", string(w)), slog.String("credential", string(c)))
}

func created(body []byte) api.Response {
	return api.Response{Status: http.StatusCreated, Body: body}
}

// place checks a valid request against storage, side by side: that the allow-listed
// keys and the workspace are the account's. At the same time it claims the
// credential's position, which may stay unused, and seals the key.
func (h handler) place(ctx context.Context, caller auth.Caller, workspace ids.Workspace, n byok.New) (byok.Draft, error) {
	account, hashes := caller.Account(), keyHashes(n.AllowedAPIKeyHashes)
	var placeErr error
	if workspace == "" {
		workspace, placeErr = h.workspaces.Default(ctx, caller)
		if placeErr != nil && !isNoWorkspace(placeErr) {
			return byok.Draft{}, placeErr
		}
	}
	var (
		owned             map[auth.KeyHash]bool
		draft             byok.Draft
		position          int64
		ownedErr, sealErr error
	)
	steps := []func(context.Context){
		func(ctx context.Context) { owned, ownedErr = h.keyring.Owned(ctx, account, hashes) },
	}
	if placeErr == nil {
		steps = append(steps,
			func(ctx context.Context) { draft, sealErr = h.credentials.Seal(ctx, account, workspace, n) },
			func(ctx context.Context) {
				position, placeErr = h.positions.Claim(ctx, account, workspace, n.Provider)
			},
		)
	}
	calls.Together(ctx, steps...)
	draft.SortOrder = position

	// A request that can never succeed is a 400, whatever else failed.
	var issues []api.Issue
	if ownedErr == nil {
		issues = foreignKeys(hashes, owned)
	}
	if isNoWorkspace(placeErr) {
		issues = append(issues, api.Issue{Path: "/workspace_id", Message: "must be a workspace of the account that is not deleted; if omitted, the account must have a default workspace"})
	}
	if len(issues) > 0 {
		return byok.Draft{}, api.Invalid(issues)
	}
	for _, err := range []error{ownedErr, placeErr, sealErr} {
		if err != nil {
			return byok.Draft{}, err
		}
	}
	return draft, nil
}

// isNoWorkspace reports whether err means that the account has no such workspace.
func isNoWorkspace(err error) bool { return errors.Is(err, auth.ErrNoWorkspace) }

func keyHashes(hashes []string) []auth.KeyHash {
	var list []auth.KeyHash
	for _, h := range hashes {
		list = append(list, auth.KeyHash(h))
	}
	return list
}

// foreignKeys reports the hashes that name no key of the account. Another
// account's key and an unknown one get the same message.
func foreignKeys(hashes []auth.KeyHash, owned map[auth.KeyHash]bool) []api.Issue {
	var issues []api.Issue
	for i, h := range hashes {
		if !owned[h] {
			issues = append(issues, api.Issue{
				Path:    api.Element("allowed_api_key_hashes", i),
				Message: "must be the hash of an API key of the account",
			})
		}
	}
	return issues
}
