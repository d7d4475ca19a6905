package main

import (
	"strings"
	"time"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// body is the 200 of the contract. Every member is always there: clients in the
// field fail on an absent one.
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
	s := timestamp(*t)
	return &s
}

// matches reports whether an If-None-Match names the entity tag (RFC 9110,
// sections 8.8.3 and 13.1.2): "*", or a list of tags compared weakly. A list
// that is not well-formed counts up to where it stops being so.
func matches(headers []string, etag string) bool {
	rest := strings.Join(headers, ",")
	if strings.Trim(rest, " \t") == "*" {
		return true
	}
	for {
		rest = strings.TrimLeft(rest, " \t,")
		tag, after, ok := cutTag(rest)
		if !ok {
			return false
		}
		if tag == etag {
			return true
		}
		rest = strings.TrimLeft(after, " \t")
		if !strings.HasPrefix(rest, ",") {
			return false
		}
	}
}

// cutTag takes one entity tag, its W/ dropped, off the front of s.
func cutTag(s string) (tag, rest string, ok bool) {
	s = strings.TrimPrefix(s, "W/")
	if !strings.HasPrefix(s, `"`) {
		return "", "", false
	}
	end := strings.IndexByte(s[1:], '"')
	if end < 0 {
		return "", "", false
	}
	return s[:end+2], s[end+2:], true
}
