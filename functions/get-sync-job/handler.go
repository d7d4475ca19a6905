package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// pollAfter is how long a client should wait before its next request.
const pollAfter = 5 * time.Second

type finder interface {
	// Find changes nothing and may be repeated.
	Find(context.Context, ids.Job) (syncjobs.Found, error)
}

func operation(jobs finder) api.Operation {
	h := handler{jobs: jobs}
	return api.Operation{
		ID:               "getSyncJob",
		Method:           http.MethodGet,
		Resource:         "/api/v1/scim/sync-jobs/{id}",
		StandardKeyError: api.Unauthenticated(auth.ManagementKeyRequired),
		Prepare:          h.prepare,
	}
}

type handler struct {
	jobs finder
}

// prepare looks up the job at the same time as the key is looked up. Neither depends on
// the other.
func (h handler) prepare(ctx context.Context, r *api.Request) api.Act {
	id, ok := ids.Parse[ids.Job](r.Path("id"))
	if !ok {
		return func(context.Context, auth.Caller) (api.Response, error) { return api.Response{}, api.NotFound() }
	}
	found, err := h.jobs.Find(ctx, id)
	return func(_ context.Context, caller auth.Caller) (api.Response, error) {
		if err != nil {
			return api.Response{}, err
		}
		job, err := found.For(caller.Account())
		if errors.Is(err, syncjobs.ErrNotFound) {
			return api.Response{}, api.NotFound().Because(found.Damage())
		}
		if err != nil {
			return api.Response{}, err
		}
		return newResponse(job, r.Header("If-None-Match")), nil
	}
}

// newResponse is 200 with the job, or 304 if the client has the same bytes.
func newResponse(job syncjobs.Job, ifNoneMatch []string) api.Response {
	body := api.JSON(newBody(job))
	etag := etagOf(body)
	response := api.Response{
		Status: http.StatusOK,
		Header: map[string]string{"ETag": etag, "Cache-Control": "private, no-cache"},
		Body:   body,
	}
	if !job.Status.Finished() {
		response.Header["Retry-After"] = strconv.Itoa(int(pollAfter.Seconds()))
	}
	if matches(ifNoneMatch, etag) {
		response.Status, response.Body = http.StatusNotModified, nil
	}
	return response
}
