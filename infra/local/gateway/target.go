package gateway

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// targets follows the requests on a connection and hides from net/http what it
// refuses to parse, so that a path with a broken escape or a control character,
// or a header whose name is not ASCII, is a request like any other. The targets
// as they were sent are kept, in order, for the handler; such a header has "_" in
// its name.
//
// It follows bodies of a stated length only. Past any other body, or a header on
// several lines, nothing on the connection is hidden, and net/http refuses such a
// target as before.
type targets struct {
	mu      sync.Mutex // net/http reads ahead while a handler runs
	sent    []string   // not yet taken by the handler
	line    []byte     // the current line of a request's head, as it was sent
	spaces  int        // in line
	headers bool       // line is a header
	length  string     // Content-Length of the current head, if any
	body    int64      // bytes of the body that are still to come
	lost    bool       // the beginning of the next request is not known
}

// read follows p, which was just read from the connection, and changes it in place.
func (t *targets) read(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(p) > 0 && !t.lost {
		if n := min(t.body, int64(len(p))); n > 0 {
			t.body -= n
			p = p[n:]
			continue
		}
		b := p[0]
		if b == '\n' {
			t.endLine(strings.TrimSuffix(string(t.line), "\r"))
			t.line, t.spaces = t.line[:0], 0
		} else {
			t.line = append(t.line, b)
		}
		if b == ' ' {
			t.spaces++
		}
		if t.hides(b) {
			p[0] = '_'
		}
		p = p[1:]
	}
}

// hides reports whether net/http would refuse the byte where it stands: in the
// target, or in the name of a header, which no operation reads then.
func (t *targets) hides(b byte) bool {
	if t.headers {
		return b >= 0x80 && !bytes.ContainsAny(t.line, ": \t")
	}
	return t.spaces == 1 && (b == '%' || b < ' ' || b == 0x7f)
}

func (t *targets) endLine(line string) {
	switch {
	case !t.headers && line != "": // net/http tolerates an empty line after a body
		_, rest, _ := strings.Cut(line, " ")
		target, _, _ := strings.Cut(rest, " ")
		t.sent = append(t.sent, target)
		t.headers = true
	case t.headers && line != "":
		t.endHeader(line)
	case t.headers:
		if t.length != "" {
			n, err := strconv.ParseInt(t.length, 10, 64)
			t.body, t.lost = n, t.lost || err != nil
		}
		t.headers, t.length = false, ""
	}
}

func (t *targets) endHeader(line string) {
	name, value, _ := strings.Cut(line, ":")
	folded := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
	if folded || strings.EqualFold(name, "Transfer-Encoding") {
		t.lost = true
	}
	if strings.EqualFold(name, "Content-Length") {
		t.length = strings.Trim(value, " \t") // net/http refuses a second one that differs
	}
}

// take removes the target of the request that is served now.
func (t *targets) take() (target string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sent) == 0 {
		return "", false
	}
	target, t.sent = t.sent[0], t.sent[1:]
	return target, true
}

type targetsKey struct{}

// withTargets lets rawTarget find the connection's targets.
func withTargets(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*connection); ok {
		return context.WithValue(ctx, targetsKey{}, &c.targets)
	}
	return ctx
}

// rawTarget is the path and the query exactly as the request line has them.
func rawTarget(r *http.Request) (path, query string) {
	target := r.RequestURI
	if t, ok := r.Context().Value(targetsKey{}).(*targets); ok {
		if sent, ok := t.take(); ok {
			target = sent
		}
	}
	path, query, _ = strings.Cut(target, "?")
	if _, rest, ok := strings.Cut(path, "://"); ok && !strings.HasPrefix(path, "/") {
		// The absolute form, which clients use for proxies.
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	return path, query
}
