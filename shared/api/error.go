package api

import (
	"errors"
	"fmt"
	"maps"
	"net/http"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/issues"
)

// Error is an unsuccessful response: fixed text, a machine-readable reason and the
// paths of issues in the request. It contains nothing that the caller sent.
type Error struct {
	status int
	reason auth.Reason
	issues []issues.Issue
	header map[string]string
	cause  error // for the log only
}

// Invalid is the 400 for a request that can never succeed unchanged.
func Invalid(all ...issues.Issue) *Error {
	return &Error{status: http.StatusBadRequest, issues: all[:min(len(all), issues.Max)]}
}

// Unauthenticated is the 401 for a caller without an accepted key.
func Unauthenticated(reason auth.Reason) *Error {
	return &Error{status: http.StatusUnauthorized, reason: reason}
}

// Forbidden is the 403 for a key that is not a management key.
func Forbidden() *Error {
	return &Error{status: http.StatusForbidden, reason: auth.ManagementKeyRequired}
}

// NotFound is the 404 for a resource that does not exist or belongs to another account.
func NotFound() *Error { return &Error{status: http.StatusNotFound} }

// RateLimited is the 429 of an operation's own limiter.
func RateLimited() *Error { return &Error{status: http.StatusTooManyRequests} }

// With sets the headers of e, which must have been made for this request.
func (e *Error) With(header map[string]string) *Error {
	e.header = header
	return e
}

// Because sets the cause of e, which must have been made for this request. The cause is logged
// at level ERROR; nil means none.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s", e.status, message(e.status)) }

// Unwrap returns the cause. It is for the log, never for the caller.
func (e *Error) Unwrap() error { return e.cause }

// message is the fixed text of a status, as in infra/openapi.yaml.
func message(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "Invalid request parameters"
	case http.StatusUnauthorized:
		return "Missing Authentication header"
	case http.StatusForbidden:
		return "Only management keys can perform this operation"
	case http.StatusNotFound:
		return "Resource not found"
	case http.StatusTooManyRequests:
		return "Rate limit exceeded"
	default:
		return "Internal Server Error"
	}
}

type envelope struct {
	Code     int    `json:"code"`
	Message  string `json:"message"`
	Metadata struct {
		RequestID string         `json:"request_id"`
		Reason    auth.Reason    `json:"reason,omitzero"`
		Issues    []issues.Issue `json:"issues,omitzero"`
	} `json:"metadata"`
}

// respond is the response to a request that ended in err: an *Error has its own
// status, any other error is a 500.
func respond(err error, requestID string) Response {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{status: http.StatusInternalServerError}
	}
	body := envelope{Code: e.status, Message: message(e.status)}
	body.Metadata.RequestID, body.Metadata.Reason, body.Metadata.Issues = requestID, e.reason, e.issues
	header := map[string]string{}
	if e.status == http.StatusUnauthorized {
		header["WWW-Authenticate"] = "Bearer"
	}
	maps.Copy(header, e.header)
	return Response{Status: e.status, Header: header, Body: JSON(map[string]envelope{"error": body})}
}
