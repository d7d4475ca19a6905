package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/issues"
)

type workspaces interface {
	// Default changes nothing and may be repeated.
	Default(context.Context, auth.Caller) (ids.Workspace, error)
}

type positions interface {
	// Next fails if the workspace is not live. After an error a position may be taken: a
	// gap, which is allowed.
	Next(ctx context.Context, account ids.Account, workspace ids.Workspace, provider string, bytes int64) (auth.Position, error)
}

type keyring interface {
	// Owned changes nothing and may be repeated.
	Owned(context.Context, ids.Account, []ids.KeyHash) (map[ids.KeyHash]bool, error)
}

type credentials interface {
	// Seal, HasRoom and Recall change nothing and may be repeated.
	Seal(context.Context, ids.Account, ids.Workspace, byok.New) (byok.Draft, error)
	HasRoom(ctx context.Context, w ids.Workspace, b byok.Bound, size int64) (bool, error)
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

// prepare looks up an earlier request under the same idempotency key, at the same
// time as the API key is looked up. Once the caller is known, the Act checks the request
// by itself. Then it checks whether the request is a replay, and last it checks it
// against storage.
func (h handler) prepare(ctx context.Context, r *api.Request) api.Act {
	key, headerIssues := idempotencyKey(r)
	attempt, recallErr := newAttempt(ctx, h.credentials, r, key)
	return func(ctx context.Context, caller auth.Caller) (api.Response, error) {
		object := r.Object(members...)
		n, named := decode(object)
		defer n.Key.Wipe()
		if faults := append(headerIssues, object.Issues()...); len(faults) > 0 {
			return api.Response{}, api.Invalid(faults...)
		}
		bound, err := boundOf(r)
		if err = cmp.Or(err, recallErr); err != nil {
			return api.Response{}, err
		}
		if response, err := attempt.begin(object); !errors.Is(err, byok.ErrNotRemembered) {
			return response, err
		}
		draft, err := h.draft(ctx, caller, named, n, bound)
		if refusal, refused := errors.AsType[*api.Error](err); refused {
			return attempt.refuse(ctx, refusal)
		}
		if err != nil {
			return api.Response{}, err
		}
		return attempt.commit(ctx, draft)
	}
}

// boundOf reads the workspaces' bound from the stage's variables, as deleteFile reads its
// rate. During a deployment a new version may serve requests before the stage has a new
// variable.
func boundOf(r *api.Request) (byok.Bound, error) {
	bound := byok.Bound{Credentials: byok.MaxStored, Bytes: byok.MaxBytes}
	given := r.StageVariable("credentialsPerWorkspace")
	if given == "" {
		return bound, nil
	}
	n, err := strconv.ParseInt(given, 10, 64)
	if err != nil || n < 1 || n > byok.MaxStored {
		return bound, fmt.Errorf("stage variable credentialsPerWorkspace is not a number from 1 to %d", byok.MaxStored)
	}
	bound.Credentials = n
	return bound, nil
}

// note adds the credential's id to the audit line, also after a failed write, because
// the write may have been applied.
func note(r *api.Request, w ids.Workspace, c ids.Credential) {
	r.Note(slog.String("workspace", string(w)), slog.String("credential", string(c)))
}

func created(body []byte) api.Response {
	return api.Response{Status: http.StatusCreated, Body: body}
}

var errFull = errors.New("the workspace is full")

// draft checks a valid request against storage: the workspace and the allow-listed keys must
// be the account's. At the same time it takes the credential's position and seals the key.
// The position may stay unused. A request that can never succeed is an *api.Error, even if
// something else failed.
func (h handler) draft(ctx context.Context, caller auth.Caller, named ids.Workspace, n byok.New, bound byok.Bound) (byok.Draft, error) {
	account, hashes := caller.Account(), n.AllowedAPIKeyHashes
	workspace, workspaceErr := named, error(nil)
	if named == "" {
		workspace, workspaceErr = h.workspaces.Default(ctx, caller)
	}
	if workspaceErr != nil && !errors.Is(workspaceErr, auth.ErrNoWorkspace) {
		return byok.Draft{}, workspaceErr
	}
	var (
		owned             map[ids.KeyHash]bool
		draft             byok.Draft
		sortOrder         int64
		ownedErr, sealErr error
	)
	steps := []func(context.Context){
		func(ctx context.Context) { owned, ownedErr = h.keyring.Owned(ctx, account, hashes) },
	}
	if workspaceErr == nil {
		steps = append(steps,
			func(ctx context.Context) { draft, sealErr = h.credentials.Seal(ctx, account, workspace, n) },
			func(ctx context.Context) { sortOrder, workspaceErr = h.position(ctx, account, workspace, n, bound) },
		)
	}
	calls.Together(ctx, steps...)

	var faults []issues.Issue
	var damage error // of the rows that the request names, for the log
	if owned != nil {
		faults, damage = foreignKeys(hashes, owned), ownedErr
	}
	switch {
	case errors.Is(workspaceErr, errFull):
		faults = append(faults, issues.Issue{Path: "/workspace_id", Reason: issues.Full, Message: fmt.Sprintf(
			"the workspace is full: it holds at most %d credentials, disabled ones included, and %d bytes of them", bound.Credentials, bound.Bytes)})
	case errors.Is(workspaceErr, auth.ErrNoWorkspace):
		faults = append(faults, issues.Issue{Path: "/workspace_id", Reason: issues.Unknown,
			Message: "must be a workspace of the account that is not deleted; if omitted, the account must have a default workspace"})
		if errors.Is(workspaceErr, auth.ErrUnreadable) {
			damage = errors.Join(damage, workspaceErr)
		}
	}
	if len(faults) > 0 {
		return byok.Draft{}, api.Invalid(faults...).Because(damage)
	}
	draft.SortOrder = sortOrder
	return draft, cmp.Or(ownedErr, workspaceErr, sealErr)
}

// position takes the credential's position. The error is errFull if the workspace has no
// room: package byok has the rule.
func (h handler) position(ctx context.Context, account ids.Account, workspace ids.Workspace, n byok.New, bound byok.Bound) (int64, error) {
	size := n.Size()
	position, err := h.positions.Next(ctx, account, workspace, n.Provider, size)
	if err != nil || bound.Covers(position.Made.Credentials, position.Made.Bytes) {
		return position.SortOrder, err
	}
	room, err := h.credentials.HasRoom(ctx, workspace, bound, size)
	if err == nil && !room {
		err = errFull
	}
	return position.SortOrder, err
}

// foreignKeys reports the hashes that do not name a key of the account. Another account's
// key and an unknown one get the same message.
func foreignKeys(hashes []ids.KeyHash, owned map[ids.KeyHash]bool) []issues.Issue {
	var faults []issues.Issue
	for i, h := range hashes {
		if !owned[h] {
			faults = append(faults, issues.Issue{
				Path:    api.Element("allowed_api_key_hashes", i),
				Reason:  issues.Unknown,
				Message: "must be the hash of an API key of the account",
			})
		}
	}
	return faults
}
