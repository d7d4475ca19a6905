package api

import (
	"log/slog"
	"net/http"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/secret"
)

// Request is what the caller sent, none of it to be trusted.
type Request struct {
	id, sourceIP     string
	method, resource string
	path, stage      members
	query            map[string][]string
	header           http.Header
	body             secret.Bytes

	bearer auth.Bearer
	caller auth.Caller
	known  bool // the caller was let in
	notes  []slog.Attr
}

// Path is a parameter of the path, as the gateway hands it over: undecoded. It
// is "" where the parameter has more than one value.
func (r *Request) Path(name string) string { return r.path.single(name) }

// Query is every value of a query parameter.
func (r *Request) Query(name string) []string { return r.query[name] }

// Header is every value of a header, whatever the case of its name.
func (r *Request) Header(name string) []string { return r.header.Values(name) }

// StageVariable is a setting of the deployment that the gateway passes on, or ""
// where it has not exactly one value.
func (r *Request) StageVariable(name string) string { return r.stage.single(name) }

// Key is the hash of the key the request came with.
func (r *Request) Key() auth.KeyHash { return r.bearer.Hash() }

// Bearer is the key itself, for what is derived from it.
func (r *Request) Bearer() auth.Bearer { return r.bearer }

// Note adds to the request's log line, and to its audit line where it has one.
// Only ids of ours, counts and fixed words belong there.
func (r *Request) Note(attrs ...slog.Attr) { r.notes = append(r.notes, attrs...) }
