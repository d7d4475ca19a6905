package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox.dev/infra/test/kit"
)

// hosts are the providers of envoy.yaml by their hosts.
var hosts = map[string]string{"api.openai.com": "openai", "example.openai.azure.com": "azure", "api.anthropic.com": "anthropic"}

// The header in which each provider takes its key.
var keyHeaders = map[string]string{"openai": "Authorization", "azure": "Api-Key", "anthropic": "X-Api-Key"}

// Headers that a client may send, and no provider may receive.
var forged = []string{
	"X-Signalbox-Plan", "p", "X-Signalbox-Provider", "azure", "X-Signalbox-User", "u", "X-Api-Key", "sk-forged", "Api-Key", "sk-forged", "X-Goog-Api-Key", "sk-forged",
	"Cookie", "c=sk-forged", "X-Envoy-Max-Retries", "9", "X-Envoy-Retry-On", "5xx,retriable-4xx", "X-Envoy-Upstream-Rq-Timeout-Ms", "1", "X-Envoy-Attempt-Count", "2",
	"X-Forwarded-For", "203.0.113.7", "Forwarded", "for=203.0.113.7", "X-Real-Ip", "203.0.113.7", "Via", "1.1 a", "Origin", "https://tenant.example", "Referer", "https://tenant.example",
	"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate", "a=b", "Baggage", "user=u", "X-B3-Traceid", "1", "B3", "0",
	"Openai-Organization", "org-tenant", "Openai-Project", "proj-tenant",
}

// Headers of a provider that are about its account, or ours: no caller gets them. Callers
// get the others.
var hidden, shown = []string{
	"Openai-Organization", "Set-Cookie", "X-Envoy-Ratelimited", "Www-Authenticate", "X-Ratelimit-Remaining-Tokens", "Anthropic-Ratelimit-Requests-Limit", "X-Signalbox-Outcome", "X-Signalbox-Credential",
}, []string{"Retry-After", "Retry-After-Ms", "X-Should-Retry", "X-Request-Id"}

// received is a key that a provider received.
type received struct{ provider, key string }

// providers is every provider. A request's text sets the answers to its attempts:
// "17 401 503 200". Answer 0 closes the connection; held waits for its channel; slow waits a
// little; stream and cut wait for the caller to read each part, and cut breaks off.
type providers struct {
	mu       sync.Mutex
	received map[string][]received
	leaks    []string
	secrets  []string
	channels map[string]chan struct{} // by the request's number
}

func serveProviders(t *testing.T, folder string) *providers {
	t.Helper()
	p := &providers{received: map[string][]received{}, channels: map[string]chan struct{}{}}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(folder, "ca.pem"), filepath.Join(folder, "key.pem"))
	kit.Must(t, err)
	serveUntilEnd(t, "127.0.0.1:443", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, p.answer)
	return p
}

// serveUntilEnd serves until the test ends, with TLS if there is a config.
func serveUntilEnd(t *testing.T, address string, config *tls.Config, handler http.HandlerFunc) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", address) //nolint:noctx // at once
	kit.Must(t, err)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, TLSConfig: config}
	t.Cleanup(func() { _ = server.Close() })
	if config != nil {
		go func() { _ = server.ServeTLS(l, "", "") }()
	} else {
		go func() { _ = server.Serve(l) }()
	}
	return "http://" + l.Addr().String()
}

func (p *providers) isSecret(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.secrets, func(s string) bool { return strings.Contains(text, s) })
}

// take returns and forgets what the providers received for a request.
func (p *providers) take(number string) []received {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer delete(p.received, number)
	return p.received[number]
}

func (p *providers) channel(number string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.channels[number] == nil {
		p.channels[number] = make(chan struct{})
	}
	return p.channels[number]
}

// note records an attempt and returns its number in the request, from 0.
func (p *providers) note(number, name string, r *http.Request, body []byte) int {
	var keys []string
	for _, header := range []string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Cookie"} {
		keys = append(keys, r.Header.Values(header)...)
	}
	path := map[bool]string{true: "/openai/v1/chat/completions", false: chat}[name == "azure"]
	headers, _ := json.Marshal(r.Header) // strings
	text := string(headers) + r.URL.String() + string(body)
	isLeak := len(keys) != 1 || r.RequestURI != path || strings.Contains(strings.ToLower(text), "x-signalbox") || strings.Contains(text, "sk-forged") || p.isSecret(text)
	for header := range r.Header {
		isLeak = isLeak || slices.Contains(forged, header) && header != keyHeaders[name] || strings.HasPrefix(header, "X-Envoy") || strings.HasPrefix(header, "X-Forwarded")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if isLeak {
		p.leaks = append(p.leaks, name+" "+r.RequestURI+" "+string(headers))
	}
	p.received[number] = append(p.received[number], received{name, strings.TrimPrefix(r.Header.Get(keyHeaders[name]), map[bool]string{true: "Bearer "}[name == "openai"])})
	return len(p.received[number]) - 1
}

func (p *providers) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var message struct{ Messages []struct{ Content string } }
	if json.Unmarshal(body, &message) != nil || len(message.Messages) == 0 {
		message.Messages = []struct{ Content string }{{"0"}}
	}
	words := strings.Fields(message.Messages[0].Content)
	attempt, answer := p.note(words[0], hosts[r.Host], r, body), "200"
	if attempt+1 < len(words) {
		answer = words[attempt+1]
	}
	wait, after, isTwo := strings.Cut(answer, ",")
	switch wait {
	case "held":
		<-p.channel(words[0])
	case "slow":
		time.Sleep(300 * time.Millisecond)
	}
	if isTwo {
		answer = after
	}
	for _, name := range append(hidden, shown...) {
		w.Header().Set(name, "1")
	}
	w.Header().Set("X-Signalbox-Served-By", "forged")
	switch status, err := strconv.Atoi(answer); {
	case answer == "zipped":
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zipped([]byte("answer")))
	case answer == "stream", answer == "cut":
		p.stream(w, words[0], answer == "cut")
	case err == nil && status > 0:
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"answer":%q}`, answer)
	default:
		panic(http.ErrAbortHandler)
	}
}

// stream sends three parts, each after the caller has read the one before.
func (p *providers) stream(w http.ResponseWriter, number string, isCut bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	for part := range 3 {
		_, _ = fmt.Fprintf(w, "data: %d\n\n", part)
		_ = http.NewResponseController(w).Flush()
		<-p.channel(number)
		if isCut {
			panic(http.ErrAbortHandler)
		}
	}
}
