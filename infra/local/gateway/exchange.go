package gateway

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// exchange is a request before its route is found.
type exchange struct {
	// id is $context.requestId: always fresh.
	id       string
	extended string
	trace    string
	time     time.Time
	path     string
	query    string
	source   string
}

func newExchange(r *http.Request) *exchange {
	var random [22]byte
	// rand.Read never fails.
	_, _ = rand.Read(random[:])
	now := time.Now().UTC()
	x := &exchange{
		id:       uuid.NewString(),
		extended: base64.RawURLEncoding.EncodeToString(random[:10]) + "=",
		trace:    fmt.Sprintf("Root=1-%08x-%x", now.Unix(), random[10:]),
		time:     now,
	}
	x.path, x.query = target(r)
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		x.source = host
	}
	return x
}

// target returns the path and the query as the request line has them.
func target(r *http.Request) (path, query string) {
	path, query, _ = strings.Cut(r.RequestURI, "?")
	if _, rest, ok := strings.Cut(path, "://"); ok && !strings.HasPrefix(path, "/") {
		// The absolute form, which clients use for proxies.
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	return path, query
}

// response is the response to the client.
type response struct {
	status int
	header http.Header
	body   string
}

// send sends the response with the headers that every response has.
func (x *exchange) send(w http.ResponseWriter, r response) {
	if r.header.Get("Content-Type") == "" && r.body != "" {
		r.header.Set("Content-Type", "application/json")
	}
	r.header["x-amzn-RequestId"] = []string{x.id}
	r.header["x-amz-apigw-id"] = []string{x.extended}
	for name, values := range r.header {
		w.Header()[name] = values
	}
	if r.status == http.StatusNoContent || r.status == http.StatusNotModified {
		w.WriteHeader(r.status)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(r.body)))
	w.WriteHeader(r.status)
	// An error means that the client has disconnected.
	_, _ = w.Write([]byte(r.body))
}
