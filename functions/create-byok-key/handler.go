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
	Owned(context.Context, ids.Account, []auth.KeyHash) (map[auth.KeyHash]bool, error)
}

type credentials interface {
	// Seal, HasRoom and Recall change nothing and may be repeated.
	Seal(context.Context, ids.Account, ids.Workspace, byok.New) (byok.Draft, error)
	HasRoom(ctx context.Context, w ids.Workspace, most, size int64) (bool, error)
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
		most, err := bound(r)
		if err = cmp.Or(err, recallErr); err != nil {
			return api.Response{}, err
		}
		if response, ok, err := attempt.replayed(object); ok || err != nil {
			return response, err
		}
		draft, problems, err := h.draft(ctx, caller, named, n, most)
		if len(problems) > 0 {
			return attempt.refuse(ctx, problems, err)
		}
		if err != nil {
			return api.Response{}, err
		}
		return attempt.commit(ctx, draft)
	}
}

// bound reads how many credentials a workspace may hold from the stage's variables, as
// deleteFile reads its rate. During a deployment a new version may serve requests before
// the stage has a new variable.
func bound(r *api.Request) (int64, error) {
	given := r.StageVariable("credentialsPerWorkspace")
	if given == "" {
		return byok.MaxStored, nil
	}
	n, err := strconv.ParseInt(given, 10, 64)
	if err != nil || n < 1 || n > byok.MaxStored {
		return 0, fmt.Errorf("stage variable credentialsPerWorkspace is not a number from 1 to %d", byok.MaxStored)
	}
	return n, nil
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

// draft checks a valid request against storage. The workspace and the allow-listed
// keys must be the account's. At the same time draft takes the credential's position and
// seals the key. The position may stay unused. An error beside problems is for the log.
func (h handler) draft(ctx context.Context, caller auth.Caller, named ids.Workspace, n byok.New, most int64) (byok.Draft, []issues.Issue, error) {
	account, hashes := caller.Account(), keyHashes(n.AllowedAPIKeyHashes)
	workspace, workspaceErr := named, error(nil)
	if named == "" {
		workspace, workspaceErr = h.workspaces.Default(ctx, caller)
		if workspaceErr != nil && !errors.Is(workspaceErr, auth.ErrNoWorkspace) {
			return byok.Draft{}, nil, workspaceErr
		}
	}
	var (
		owned                          map[auth.KeyHash]bool
		draft                          byok.Draft
		sortOrder                      int64
		ownedErr, sealErr, positionErr error
	)
	steps := []func(context.Context){
		func(ctx context.Context) { owned, ownedErr = h.keyring.Owned(ctx, account, hashes) },
	}
	if workspaceErr == nil {
		steps = append(steps,
			func(ctx context.Context) { draft, sealErr = h.credentials.Seal(ctx, account, workspace, n) },
			func(ctx context.Context) {
				sortOrder, positionErr = h.place(ctx, account, workspace, n, most)
			},
		)
	}
	calls.Together(ctx, steps...)

	// A request that can never succeed is a 400, even if something else failed.
	var problems []issues.Issue
	var damage error // of the rows that the request names, for the log
	if owned != nil {
		problems, damage = foreignKeys(hashes, owned), ownedErr
	}
	if err := cmp.Or(workspaceErr, positionErr); errors.Is(err, auth.ErrNoWorkspace) {
		if errors.Is(err, auth.ErrUnreadable) {
			damage = errors.Join(damage, err)
		}
		problems = append(problems, issues.Issue{Path: "/workspace_id", Reason: issues.Unknown, Message: "must be a workspace of the account that is not deleted; if omitted, the account must have a default workspace"})
	} else if errors.Is(err, errFull) {
		problems = append(problems, issues.Issue{Path: "/workspace_id", Reason: issues.Full, Message: fmt.Sprintf(
			"the workspace is full: it holds at most %d credentials, disabled ones included, and %d bytes of them", most, byok.MaxBytes)})
	}
	if len(problems) > 0 {
		return byok.Draft{}, problems, damage
	}
	draft.SortOrder = sortOrder
	return draft, nil, cmp.Or(ownedErr, positionErr, sealErr)
}

// place takes a position. A workspace that gave out more than it may hold is counted: some
// of its credentials may be deleted, or were never stored. The count comes after the
// position, so nobody can have another account's workspace counted.
func (h handler) place(ctx context.Context, account ids.Account, workspace ids.Workspace, n byok.New, most int64) (sortOrder int64, err error) {
	size := n.Size()
	position, err := h.positions.Next(ctx, account, workspace, n.Provider, size)
	if err != nil || position.Made.Credentials <= most && position.Made.Bytes <= byok.MaxBytes {
		return position.SortOrder, err
	}
	room, err := h.credentials.HasRoom(ctx, workspace, most, size)
	if err == nil && !room {
		err = errFull
	}
	return position.SortOrder, err
}

func keyHashes(hashes []string) []auth.KeyHash {
	var list []auth.KeyHash
	for _, h := range hashes {
		list = append(list, auth.KeyHash(h))
	}
	return list
}

// foreignKeys reports the hashes that do not name a key of the account. Another account's
// key and an unknown one get the same message.
func foreignKeys(hashes []auth.KeyHash, owned map[auth.KeyHash]bool) []issues.Issue {
	var problems []issues.Issue
	for i, h := range hashes {
		if !owned[h] {
			problems = append(problems, issues.Issue{
				Path:    api.Element("allowed_api_key_hashes", i),
				Reason:  issues.Unknown,
				Message: "must be the hash of an API key of the account",
			})
		}
	}
	return problems
}
