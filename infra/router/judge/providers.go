package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The header in which each provider takes its key.
var keyHeaders = map[string]string{"openai": "Authorization", "azure": "Api-Key", "anthropic": "X-Api-Key"}

// Headers that a client may send, and no provider may receive.
var forged = map[string]string{
	"X-Signalbox-Plan": "p", "X-Signalbox-Provider": "azure", "X-Signalbox-User": "u", "X-Api-Key": "sk-forged", "Api-Key": "sk-forged", "X-Goog-Api-Key": "sk-forged",
	"Cookie": "c=sk-forged", "X-Envoy-Max-Retries": "9", "X-Envoy-Retry-On": "5xx,retriable-4xx", "X-Envoy-Upstream-Rq-Timeout-Ms": "1", "X-Envoy-Attempt-Count": "2",
	"X-Forwarded-For": "203.0.113.7", "Forwarded": "for=203.0.113.7", "X-Real-Ip": "203.0.113.7", "Via": "1.1 a", "Origin": "https://tenant.example", "Referer": "https://tenant.example",
	"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate": "a=b", "Baggage": "user=u", "X-B3-Traceid": "1", "B3": "0",
	"Openai-Organization": "org-tenant", "Openai-Project": "proj-tenant",
}

// received is a key that a provider received.
type received struct{ provider, key string }

// providers is every provider, each on its own port. A request's text sets the answers to
// its attempts: "17 401 503 200". Answer 0 closes the connection; hang never answers; held
// waits for release; slow waits a little; cut breaks off; stream waits for the caller to
// read each part.
type providers struct {
	ports map[string]int

	mu       sync.Mutex
	received map[string][]received
	leaks    []string
	secrets  []string
	held     map[string]chan struct{} // by number: closed by release
	parts    map[string]chan struct{} // by number: one for each part that the caller has read
}

func newProviders() *providers {
	p := &providers{ports: map[string]int{}, received: map[string][]received{}, held: map[string]chan struct{}{}, parts: map[string]chan struct{}{}}
	for name := range keyHeaders {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
		must(err)
		p.ports[name] = l.Addr().(*net.TCPAddr).Port //nolint:errcheck // it listens on TCP
		go func() {
			_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.answer(w, r, name) })) //nolint:gosec // until the end
		}()
	}
	return p
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

func (p *providers) channel(all map[string]chan struct{}, number string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all[number] == nil {
		all[number] = make(chan struct{})
	}
	return all[number]
}

// note records an attempt and returns its number in the request, from 0.
func (p *providers) note(number, name string, r *http.Request, body []byte) int {
	var keys []string
	for _, header := range []string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Cookie"} {
		keys = append(keys, r.Header.Values(header)...)
	}
	path := map[bool]string{true: "/openai/v1/chat/completions", false: "/v1/chat/completions"}[name == "azure"]
	headers, _ := json.Marshal(r.Header) // strings
	text := string(headers) + r.URL.String() + string(body)
	isLeak := len(keys) != 1 || r.RequestURI != path || strings.Contains(strings.ToLower(text), "x-signalbox") || strings.Contains(text, "sk-forged") || p.isSecret(text)
	for header := range r.Header {
		_, isForged := forged[header]
		isLeak = isLeak || isForged && header != keyHeaders[name] || strings.HasPrefix(header, "X-Envoy") || strings.HasPrefix(header, "X-Forwarded")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if isLeak {
		p.leaks = append(p.leaks, name+" "+r.RequestURI+" "+string(headers))
	}
	p.received[number] = append(p.received[number], received{name, strings.TrimPrefix(r.Header.Get(keyHeaders[name]), map[bool]string{true: "Bearer "}[name == "openai"])})
	return len(p.received[number]) - 1
}

func (p *providers) answer(w http.ResponseWriter, r *http.Request, name string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var message struct{ Messages []struct{ Content string } }
	if json.Unmarshal(body, &message) != nil || len(message.Messages) == 0 {
		message.Messages = []struct{ Content string }{{"0"}}
	}
	words := strings.Fields(message.Messages[0].Content)
	attempt, answer := p.note(words[0], name, r, body), "200"
	if attempt+1 < len(words) {
		answer = words[attempt+1]
	}
	wait, after, isTwo := strings.Cut(answer, ",")
	switch wait {
	case "held":
		<-p.channel(p.held, words[0])
	case "hang":
		<-r.Context().Done()
		return
	case "slow":
		time.Sleep(300 * time.Millisecond)
	}
	if isTwo {
		answer = after
	}
	w.Header().Set("X-Envoy-Ratelimited", "true")
	w.Header().Set("Openai-Organization", "org-platform")
	w.Header().Set("Set-Cookie", "__cf=1")
	w.Header().Set("X-Signalbox-Served-By", "forged")
	switch status, err := strconv.Atoi(answer); {
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
		<-p.channel(p.parts, number)
		if isCut {
			panic(http.ErrAbortHandler)
		}
	}
}

// proxy is before an engine: up, down (it closes connections) or silent.
type proxy struct {
	url, to string

	mu   sync.Mutex
	mode string
	open map[net.Conn]bool
}

func newProxy(engine string) *proxy {
	at, err := url.Parse(engine)
	must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	must(err)
	p := &proxy{url: "http://" + l.Addr().String(), to: at.Host, mode: "up", open: map[net.Conn]bool{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) set(mode string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *proxy) serve(c net.Conn) {
	p.mu.Lock()
	mode := p.mode
	p.open[c] = true
	p.mu.Unlock()
	defer func() {
		_ = c.Close()
		p.mu.Lock()
		delete(p.open, c)
		p.mu.Unlock()
	}()
	switch mode {
	case "down":
		return
	case "silent":
		_, _ = io.Copy(io.Discard, c)
		return
	}
	engine, err := net.Dial("tcp", p.to) //nolint:noctx // at once
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(engine, c)
		_ = engine.Close()
	}()
	_, _ = io.Copy(c, engine)
	_ = engine.Close()
}
