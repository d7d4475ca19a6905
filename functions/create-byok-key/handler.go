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
)

type workspaces interface {
	// Default changes nothing and may be repeated.
	Default(context.Context, auth.Caller) (ids.Workspace, error)
}

type positions interface {
	// Claim fails if the workspace is not live or is full. An error may leave a gap.
	Claim(ctx context.Context, account ids.Account, workspace ids.Workspace, need auth.Need, room auth.Room) (auth.Claim, error)
	// Return gives back the room of a claim that will not be stored. After an error the
	// room stays taken until the workspace is full and is counted.
	Return(context.Context, auth.Claim) error
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
	CreateOnce(ctx context.Context, d byok.Draft, id byok.RequestID, earlier byok.Remembered, fingerprint, response []byte) (byok.Remembered, error)
	// Refuse affects only requests that are under way. It may be repeated.
	Refuse(ctx context.Context, id byok.RequestID, earlier byok.Remembered, fingerprint []byte, why []byok.Problem) (byok.Remembered, error)
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
		if issues := append(headerIssues, object.Issues()...); len(issues) > 0 {
			return api.Response{}, api.Invalid(issues)
		}
		room, err := roomOf(r)
		if err = cmp.Or(err, recallErr); err != nil {
			return api.Response{}, err
		}
		if response, ok, err := attempt.replayed(object); ok || err != nil {
			return response, err
		}
		need := auth.Need{Provider: n.Provider, Bytes: n.Size(), Request: attempt.name()}
		draft, claim, problems, err := h.draft(ctx, caller, named, n, need, room)
		if err != nil || len(problems) > 0 {
			_ = h.positions.Return(ctx, claim)
		}
		if err != nil {
			return api.Response{}, err
		}
		if len(problems) > 0 {
			return attempt.refuse(ctx, problems)
		}
		response, late, err := attempt.commit(ctx, draft)
		if late {
			_ = h.positions.Return(ctx, claim)
		}
		return response, err
	}
}

// roomOf reads how much a workspace may hold from the stage's variables, as deleteFile
// reads its rate. During a deployment a new version may serve requests before the stage
// has a new variable.
func roomOf(r *api.Request) (auth.Room, error) {
	room := auth.Room{Credentials: byok.MaxStored, Bytes: byok.MaxBytes}
	if given := r.StageVariable("credentialsPerWorkspace"); given != "" {
		n, err := strconv.ParseInt(given, 10, 64)
		if err != nil || n < 1 || n > byok.MaxStored {
			return auth.Room{}, fmt.Errorf("stage variable credentialsPerWorkspace is not a number from 1 to %d", byok.MaxStored)
		}
		room.Credentials = n
	}
	return room, nil
}

// note adds the credential's id to the audit line, also after a failed write, because
// the write may have been applied.
func note(r *api.Request, w ids.Workspace, c ids.Credential) {
	r.Note(slog.String("workspace", string(w)), slog.String("credential", string(c)))
}

func created(body []byte) api.Response {
	return api.Response{Status: http.StatusCreated, Body: body}
}

// draft checks a valid request against storage. The workspace and the allow-listed
// keys must be the account's. At the same time draft claims the credential's position and
// seals the key. The position may stay unused. The claim is returned also with problems
// or an error, because its room must be given back.
func (h handler) draft(ctx context.Context, caller auth.Caller, named ids.Workspace, n byok.New, need auth.Need, room auth.Room) (byok.Draft, auth.Claim, []byok.Problem, error) {
	account, hashes := caller.Account(), keyHashes(n.AllowedAPIKeyHashes)
	workspace, workspaceErr := named, error(nil)
	if named == "" {
		workspace, workspaceErr = h.workspaces.Default(ctx, caller)
		if workspaceErr != nil && !errors.Is(workspaceErr, auth.ErrNoWorkspace) {
			return byok.Draft{}, auth.Claim{}, nil, workspaceErr
		}
	}
	var (
		owned                          map[auth.KeyHash]bool
		draft                          byok.Draft
		claim                          auth.Claim
		ownedErr, sealErr, positionErr error
	)
	steps := []func(context.Context){
		func(ctx context.Context) { owned, ownedErr = h.keyring.Owned(ctx, account, hashes) },
	}
	if workspaceErr == nil {
		steps = append(steps,
			func(ctx context.Context) { draft, sealErr = h.credentials.Seal(ctx, account, workspace, n) },
			func(ctx context.Context) {
				claim, positionErr = h.positions.Claim(ctx, account, workspace, need, room)
			},
		)
	}
	calls.Together(ctx, steps...)

	// A request that can never succeed is a 400, even if something else failed.
	var problems []byok.Problem
	if ownedErr == nil {
		problems = foreignKeys(hashes, owned)
	}
	if err := cmp.Or(workspaceErr, positionErr); errors.Is(err, auth.ErrNoWorkspace) {
		problems = append(problems, byok.Problem{Path: "/workspace_id", Message: "must be a workspace of the account that is not deleted; if omitted, the account must have a default workspace"})
	} else if errors.Is(err, auth.ErrFull) {
		problems = append(problems, byok.Problem{Path: "/workspace_id", Message: fmt.Sprintf(
			"the workspace is full: it holds at most %d credentials, disabled ones included, and %d bytes of them; a deletion makes room within a minute", room.Credentials, room.Bytes)})
	}
	if len(problems) > 0 {
		return byok.Draft{}, claim, problems, nil
	}
	draft.SortOrder = claim.Position
	return draft, claim, nil, cmp.Or(ownedErr, positionErr, sealErr)
}

// invalid is the 400 for these problems.
func invalid(problems []byok.Problem) error {
	issues := make([]api.Issue, len(problems))
	for i, p := range problems {
		issues[i] = api.Issue{Path: p.Path, Message: p.Message}
	}
	return api.Invalid(issues)
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
func foreignKeys(hashes []auth.KeyHash, owned map[auth.KeyHash]bool) []byok.Problem {
	var problems []byok.Problem
	for i, h := range hashes {
		if !owned[h] {
			problems = append(problems, byok.Problem{
				Path:    api.Element("allowed_api_key_hashes", i),
				Message: "must be the hash of an API key of the account",
			})
		}
	}
	return problems
}
