package main

import (
	"time"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// body is the body of the 200. Every field is present, because existing clients fail if
// one is absent. A field without a value is null.
type body struct {
	Data job `json:"data"`
}

type job struct {
	ID            ids.Job         `json:"id"`
	Status        syncjobs.Status `json:"status"`
	SyncedGroups  *int64          `json:"synced_groups"`
	DeletedGroups *int64          `json:"deleted_groups"`
	ErrorMessage  *string         `json:"error_message"`
	CreatedAt     string          `json:"created_at"`
	StartedAt     *string         `json:"started_at"`
	FinishedAt    *string         `json:"finished_at"`
}

func newBody(j syncjobs.Job) body {
	return body{job{
		ID:            j.ID,
		Status:        j.Status,
		SyncedGroups:  j.SyncedGroups,
		DeletedGroups: j.DeletedGroups,
		ErrorMessage:  j.ErrorMessage,
		CreatedAt:     timestamp(j.CreatedAt),
		StartedAt:     optional(j.StartedAt),
		FinishedAt:    optional(j.FinishedAt),
	}}
}

// timestamp is RFC 3339 in UTC with whole seconds.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func optional(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(timestamp(*t))
}
