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
	Owned(context.Context, ids.Account, []ids.KeyHash) (auth.Owned, error)
}

type credentials interface {
	// Seal, CheckRoom and FindAnswer change nothing and may be repeated.
	Seal(context.Context, ids.Account, ids.Workspace, byok.New) (byok.Draft, error)
	CheckRoom(ctx context.Context, w ids.Workspace, b byok.Bound, size int64) error
	FindAnswer(context.Context, byok.RequestID) (byok.Answer, error)
	// Create and CreateOnce store everything or nothing; after an error everything
	// may be stored.
	Create(context.Context, byok.Draft) error
	CreateOnce(ctx context.Context, draft byok.Draft, id byok.RequestID, fingerprint, response []byte) (byok.Answer, error)
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

// prepare looks up the answer to an earlier request under the same idempotency key, at the same
// time as the API key is looked up. Once the caller is known, the Act checks what needs no
// storage. Then it replays the answer, or checks this one against storage and stores the
// credential.
func (h handler) prepare(ctx context.Context, r *api.Request) api.Act {
	id, headerIssues := requestID(r)
	var answer byok.Answer
	var findErr error
	if id != "" {
		answer, findErr = h.credentials.FindAnswer(ctx, id)
	}
	return func(ctx context.Context, caller auth.Caller) (api.Response, error) {
		object := r.Object(members...)
		n, workspace := decode(object)
		defer n.Key.Wipe()
		if found := append(headerIssues, object.Issues()...); len(found) > 0 {
			return api.Response{}, api.Invalid(found...)
		}
		bound, err := boundOf(r)
		if err = cmp.Or(err, findErr); err != nil {
			return api.Response{}, err
		}
		c := creation{handler: h, request: r, caller: caller, workspace: workspace, given: n, bound: bound}
		if id == "" {
			return c.create(ctx)
		}
		fingerprint, err := fingerprintOf(r, object)
		if err != nil {
			return api.Response{}, err
		}
		return c.createOnce(ctx, id, answer, fingerprint)
	}
}

// boundOf reads the bound on credentials from the stage's variables; the bound on bytes is
// fixed. Without the variable it is the largest: during a deployment a new version may serve
// requests before the stage has the variable.
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

// creation is a request that is valid by itself.
type creation struct {
	handler
	request   *api.Request
	caller    auth.Caller
	workspace ids.Workspace // "" means the account's default workspace
	given     byok.New
	bound     byok.Bound
}

// create stores the credential of a request without an idempotency key.
func (c creation) create(ctx context.Context) (api.Response, error) {
	draft, err := c.draft(ctx)
	if err != nil {
		return api.Response{}, err
	}
	c.note(draft.Workspace, draft.ID)
	if err := c.credentials.Create(ctx, draft); err != nil {
		return api.Response{}, err
	}
	return created(draft), nil
}

// note adds the credential's id to the audit line, also after a failed write, because
// the write may have been applied.
func (c creation) note(workspace ids.Workspace, id ids.Credential) {
	c.request.Note(slog.String("workspace", string(workspace)), slog.String("credential", string(id)))
}

func created(draft byok.Draft) api.Response {
	return api.Response{Status: http.StatusCreated, Body: api.JSON(newBody(draft.Credential))}
}

// draft checks the request against storage: the workspace and the allow-listed keys must be
// the account's. At the same time it takes the credential's position and seals the key. The
// position may stay unused. A request that can never succeed is an *api.Error, even if
// something else failed.
func (c creation) draft(ctx context.Context) (byok.Draft, error) {
	account, hashes := c.caller.Account(), c.given.AllowedAPIKeyHashes
	workspace := c.workspace
	if workspace == "" {
		var err error
		workspace, err = c.workspaces.Default(ctx, c.caller)
		if errors.Is(err, auth.ErrNoWorkspace) {
			owned, ownedErr := c.keyring.Owned(ctx, account, hashes)
			return byok.Draft{}, c.refusal(owned, ownedErr, err)
		}
		if err != nil {
			return byok.Draft{}, err
		}
	}

	var owned calls.Result[auth.Owned]
	var draft calls.Result[byok.Draft]
	var sortOrder calls.Result[int64]
	calls.Together(ctx,
		owned.Of(func(ctx context.Context) (auth.Owned, error) { return c.keyring.Owned(ctx, account, hashes) }),
		draft.Of(func(ctx context.Context) (byok.Draft, error) {
			return c.credentials.Seal(ctx, account, workspace, c.given)
		}),
		sortOrder.Of(func(ctx context.Context) (int64, error) { return c.position(ctx, workspace) }),
	)
	if refusal := c.refusal(owned.Value, owned.Err, sortOrder.Err); refusal != nil {
		return byok.Draft{}, refusal
	}
	if err := cmp.Or(owned.Err, sortOrder.Err, draft.Err); err != nil {
		return byok.Draft{}, err
	}
	draft.Value.SortOrder = sortOrder.Value
	return draft.Value, nil
}

// position takes the credential's position. It returns byok.ErrFull if the workspace has no
// room.
func (c creation) position(ctx context.Context, workspace ids.Workspace) (int64, error) {
	size := c.given.Size()
	position, err := c.positions.Next(ctx, c.caller.Account(), workspace, c.given.Provider, size)
	if err != nil {
		return 0, err
	}
	if c.bound.Covers(position.Credentials, position.Bytes) {
		return position.SortOrder, nil
	}
	return position.SortOrder, c.credentials.CheckRoom(ctx, workspace, c.bound, size)
}

// refusal returns the 400 if a listed key or the workspace is not the account's, or if the
// workspace is full. Damaged rows that the request names are the cause, for the log.
func (c creation) refusal(owned auth.Owned, ownedErr, workspaceErr error) error {
	var found []issues.Issue
	if ownedErr == nil {
		found = foreignKeys(c.given.AllowedAPIKeyHashes, owned.Hashes)
	}
	cause := owned.Damage
	switch {
	case errors.Is(workspaceErr, byok.ErrFull):
		found = append(found, issues.Issue{Path: "/workspace_id", Reason: issues.Full, Message: fmt.Sprintf(
			"the workspace is full: it holds at most %d credentials, disabled ones included, and %d bytes of them", c.bound.Credentials, c.bound.Bytes)})
	case errors.Is(workspaceErr, auth.ErrNoWorkspace):
		found = append(found, issues.Issue{Path: "/workspace_id", Reason: issues.Unknown,
			Message: "must be a workspace of the account that is not deleted; if omitted, the account must have a default workspace"})
		if errors.Is(workspaceErr, calls.ErrDamaged) {
			cause = errors.Join(cause, workspaceErr)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return api.Invalid(found...).Because(cause)
}

// foreignKeys reports the hashes that do not name a key of the account. Another account's
// key and an unknown one get the same message.
func foreignKeys(hashes []ids.KeyHash, owned map[ids.KeyHash]bool) []issues.Issue {
	var found []issues.Issue
	for i, h := range hashes {
		if !owned[h] {
			found = append(found, issues.Issue{
				Path:    api.Element("allowed_api_key_hashes", i),
				Reason:  issues.Unknown,
				Message: "must be the hash of an API key of the account",
			})
		}
	}
	return found
}
