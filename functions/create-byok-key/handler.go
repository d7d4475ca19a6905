package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

type workspaces interface {
	// Default changes nothing and may be repeated.
	Default(context.Context, auth.Caller) (ids.Workspace, error)
}

type positions interface {
	// Claim decides that the workspace is live; an error may leave a gap.
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
	// Create and CreateOnce store all of it or nothing; after an error they may
	// have stored it.
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
		ID:             "createByokKey",
		Method:         http.MethodPost,
		Resource:       "/api/v1/byok",
		ManagementOnly: api.Forbidden(),
		Audited:        true,
		Prepare:        h.prepare,
	}
}

// prepare looks for an earlier request under the same idempotency key while the
// API key is being looked up. The body stays unread until it is known who calls.
func (h handler) prepare(ctx context.Context, r *api.Request) api.Act {
	key, given, issue := idempotencyKey(r)
	if issue != nil || !given {
		return func(ctx context.Context, caller auth.Caller) (api.Response, error) {
			return h.create(ctx, r, caller, issue, nil)
		}
	}
	once := &repeatable{id: byok.NewRequestID(string(r.Key()), key)}
	once.earlier, once.err = h.credentials.Recall(ctx, once.id)
	return func(ctx context.Context, caller auth.Caller) (api.Response, error) {
		return h.create(ctx, r, caller, nil, once)
	}
}

// create answers the request: what it shows by itself is judged first, then
// whether it is a repetition, then what storage shows.
func (h handler) create(ctx context.Context, r *api.Request, caller auth.Caller, headerIssue *api.Issue, once *repeatable) (api.Response, error) {
	object := r.Object(members...)
	n, named := decode(object)
	defer n.Key.Wipe()
	issues := object.Issues()
	if headerIssue != nil {
		issues = append([]api.Issue{*headerIssue}, issues...)
	}
	if len(issues) > 0 {
		return api.Response{}, api.Invalid(issues)
	}
	if once != nil {
		replayed, ok, err := once.replay(r, object)
		if ok || err != nil {
			return replayed, err
		}
	}
	draft, err := h.place(ctx, caller, named, n)
	if err != nil {
		return api.Response{}, err
	}
	response := api.JSON(newBody(draft.Credential))
	r.Note(slog.String("workspace", string(draft.Workspace)), slog.String("credential", string(draft.ID)))
	if once == nil {
		return created(response), h.credentials.Create(ctx, draft)
	}
	once.earlier, err = h.credentials.CreateOnce(ctx, draft, once.id, once.fingerprint, response)
	if err != nil {
		return api.Response{}, err
	}
	// Another request under the same idempotency key was faster: its answer counts.
	if replayed, ok, err := once.answer(r); ok || err != nil {
		return replayed, err
	}
	return created(response), nil
}

func created(body []byte) api.Response {
	return api.Response{Status: http.StatusCreated, Body: body}
}

// isNoWorkspace tells the one expected error of the workspace's look-ups.
func isNoWorkspace(err error) bool { return errors.Is(err, auth.ErrNoWorkspace) }
