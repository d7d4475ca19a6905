package main

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
)

// placeholder stands for a key in net/http, because net/http keeps copies of every header
// in buffers. A secretConn writes the key itself.
const placeholder = "signalbox-placeholder-for-a-key"

// secretListener accepts connections that can send a secret, as many at once as open has room
// for.
type secretListener struct {
	net.Listener
	open chan struct{} // an element for each open connection
}

// Accept implements net.Listener.
func (l secretListener) Accept() (net.Conn, error) {
	l.open <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &secretConn{Conn: c, closed: sync.OnceFunc(func() { <-l.open })}, nil
}

// secretConn replaces the placeholder in its next write by a secret. One buffer holds the
// secret during that write, and is wiped.
type secretConn struct {
	net.Conn
	secret []byte // nil if there is no secret to send
	closed func()
}

// Close implements net.Conn.
func (c *secretConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// Write implements net.Conn. It writes nothing if the placeholder is missing.
func (c *secretConn) Write(p []byte) (int, error) {
	if c.secret == nil {
		return c.Conn.Write(p)
	}
	before, after, found := bytes.Cut(p, []byte(placeholder))
	if !found {
		return 0, errors.New("the response has no place for a key")
	}
	whole := slices.Concat(before, c.secret, after)
	defer clear(whole)
	c.secret = nil
	if _, err := c.Conn.Write(whole); err != nil {
		return 0, err
	}
	return len(p), nil
}

type connKey struct{}

// sendKey sends a response of status 200 without a body, with the key in the provider's header,
// and its target. The connection is closed if that fails.
func sendKey(w http.ResponseWriter, r *http.Request, provider *providerConfig, to target) {
	c, ok := r.Context().Value(connKey{}).(*secretConn)
	if !ok || len(to.key.Reveal()) == 0 {
		panic(http.ErrAbortHandler)
	}
	c.secret = to.key.Reveal()
	defer func() { c.secret = nil }()
	for name, value := range map[string]string{hostHeader: to.host, pathHeader: to.path} {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	prefix := ""
	if provider.Header == bearerHeader {
		prefix = "Bearer "
	}
	w.Header().Set(provider.Header, prefix+placeholder)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil || c.secret != nil {
		panic(http.ErrAbortHandler)
	}
}
