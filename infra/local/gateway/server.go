package gateway

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Server makes an HTTP server of the gateway. Serve it on a listener that
// Listener has wrapped.
func (g *Gateway) Server() *http.Server {
	return &http.Server{
		Handler:           g,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		// Reading and the function together.
		WriteTimeout: 30*time.Second + g.config.Timeout + 5*time.Second,
		IdleTimeout:  2 * time.Minute,
		// OPTIONS * is an unknown route like any other.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(g.config.Log.Handler(), slog.LevelDebug),
	}
}

// Listener wraps a TCP listener. net/http answers a request that it cannot read in plain
// text; through this listener it gets the gateway's own response too.
func (g *Gateway) Listener(l net.Listener) net.Listener {
	return &listener{Listener: l, gateway: g}
}

type listener struct {
	net.Listener
	gateway *Gateway
}

func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := accepted.(*net.TCPConn)
	if !ok {
		return accepted, nil
	}
	return &connection{TCPConn: tcp, gateway: l.gateway}, nil
}

// connection keeps the methods of a TCP connection that net/http looks for.
type connection struct {
	*net.TCPConn
	gateway *Gateway
}

// refusal ends the head of net/http's own response to a request that it cannot read. It is
// written in one piece and past any handler.
const refusal = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// unexpected is how net/http answers an unknown Expect header.
const unexpected = "HTTP/1.1 417 "

func (c *connection) Write(p []byte) (int, error) {
	refused := bytes.HasPrefix(p, []byte("HTTP/1.1 ")) && bytes.Contains(p, []byte(refusal))
	if !refused && !bytes.HasPrefix(p, []byte(unexpected)) {
		return c.TCPConn.Write(p)
	}
	var text bytes.Buffer
	if err := c.gateway.refuse(&text); err != nil {
		return 0, err
	}
	if _, err := c.TCPConn.Write(text.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (g *Gateway) refuse(text *bytes.Buffer) error {
	x := unreadExchange()
	own := x.complete(g.own(x, unreadable))
	own.header.Set("Date", x.time.Format(http.TimeFormat))
	whole := http.Response{
		StatusCode: own.status, ProtoMajor: 1, ProtoMinor: 1, Header: own.header, Close: true,
		ContentLength: int64(len(own.body)), Body: io.NopCloser(strings.NewReader(own.body)),
	}
	return whole.Write(text)
}
