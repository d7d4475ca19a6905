package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/limits"
)

type limiter interface {
	// Take may have used a slot even if it returns an error. It never grants a slot
	// twice.
	Take(ctx context.Context, caller string, rate limits.Rate) (limits.Decision, error)
}

type workspaces interface {
	// Find and Default change nothing and may be repeated.
	Find(context.Context, ids.Workspace) (auth.Found, error)
	Default(context.Context, auth.Caller) (ids.Workspace, error)
}

type store interface {
	// Delete may be repeated after an error, and then finishes.
	Delete(context.Context, ids.Workspace, ids.File) (files.Receipt, error)
}

func operation(l limiter, w workspaces, s store) api.Operation {
	h := handler{limiter: l, workspaces: w, files: s}
	return api.Operation{
		ID:       "deleteFile",
		Method:   http.MethodDelete,
		Resource: "/api/v1/files/{file_id}",
		Audited:  true,
		Prepare:  h.prepare,
	}
}

type handler struct {
	limiter    limiter
	workspaces workspaces
	files      store
}

// request is the parsed request.
type request struct {
	file      ids.File
	workspace ids.Workspace // "" if none was named
	possible  bool          // the ids are well-formed
}

func newRequest(r *api.Request) request {
	file, fileOK := ids.ParseFile(r.Path("file_id"))
	named := r.Query("workspace_id")
	if len(named) == 0 {
		return request{file: file, possible: fileOK}
	}
	workspace, workspaceOK := ids.Parse[ids.Workspace](named[0])
	return request{file, workspace, fileOK && workspaceOK && len(named) == 1}
}

// deleted is the body of the 200.
type deleted struct {
	ID   ids.File `json:"id"`
	Type string   `json:"type"`
}

// prepare does the look-ups that do not depend on the caller.
func (h handler) prepare(ctx context.Context, r *api.Request) api.Act {
	e := h.lookUp(ctx, r)
	return func(ctx context.Context, caller auth.Caller) (api.Response, error) {
		if e.limit.Err != nil {
			return api.Response{}, e.limit.Err
		}
		header := rateHeaders(e.limit.Value)
		if !e.limit.Value.Allowed {
			return api.Response{}, api.RateLimited().With(header)
		}
		err := h.delete(ctx, r, caller, e)
		if errors.Is(err, files.ErrNotFound) || errors.Is(err, auth.ErrNoWorkspace) {
			return api.Response{}, api.NotFound().With(header).Because(e.named.Value.Damage())
		}
		if err != nil {
			return api.Response{}, err
		}
		return api.Response{
			Status: http.StatusOK,
			Header: header,
			Body:   api.JSON(deleted{ID: e.file, Type: "file_deleted"}),
		}, nil
	}
}

// early is the parsed request with the results of lookUp.
type early struct {
	request
	limit calls.Result[limits.Decision] // or the error of a rate that cannot be read
	named calls.Result[auth.Found]      // the workspace that the request names, if any
}

// lookUp takes a slot of the limiter and, in parallel, looks up the named workspace, if
// any. An unknown key uses a slot of its own, which expires. Authentication first
// would cost every caller a round trip.
func (h handler) lookUp(ctx context.Context, r *api.Request) early {
	rate, err := rateOf(r)
	if err != nil {
		return early{limit: calls.Result[limits.Decision]{Err: err}}
	}
	e := early{request: newRequest(r)}
	calls.Together(ctx,
		e.named.Of(func(ctx context.Context) (auth.Found, error) {
			if !e.possible || e.workspace == "" {
				return auth.Found{}, nil
			}
			return h.workspaces.Find(ctx, e.workspace)
		}),
		e.limit.Of(func(ctx context.Context) (limits.Decision, error) { return h.limiter.Take(ctx, string(r.Key()), rate) }))
	return e
}

// delete deletes the file in the request's workspace.
func (h handler) delete(ctx context.Context, r *api.Request, caller auth.Caller, e early) error {
	if !e.possible {
		return files.ErrNotFound
	}
	r.Note(slog.String("file", string(e.file)))
	workspace, err := h.workspace(ctx, caller, e)
	if err != nil {
		return err
	}
	r.Note(slog.String("workspace", string(workspace)))
	receipt, err := h.files.Delete(ctx, workspace, e.file)
	if err == nil || receipt.Versions > 0 {
		r.Note(slog.Int("versions_removed", receipt.Versions))
	}
	if receipt.ResponseLost {
		// A 404 then does not prove that the file did not exist.
		r.Note(slog.Bool("answer_lost", true))
	}
	return err
}

// workspace returns the named workspace or the default one, if the caller may use
// it.
func (h handler) workspace(ctx context.Context, caller auth.Caller, e early) (ids.Workspace, error) {
	if e.workspace == "" {
		return h.workspaces.Default(ctx, caller)
	}
	if e.named.Err != nil {
		return "", e.named.Err
	}
	return e.named.Value.For(caller)
}
