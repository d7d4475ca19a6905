// Package gateway behaves like an API Gateway REST API with Lambda proxy
// integration. It finds the route by the unchanged path, passes the request on as
// a proxy event, and turns the function's answer into a response. If no function
// can answer, it sends the template's gateway response. It follows AWS's
// documentation.
//
// Not imitated: the responses to requests that are not HTTP, which net/http sends; the
// 10,240 bytes that a REST API allows for the request line and
// the headers together (here it is 1 MB); the stage at the front of the path,
// which a custom domain hides; the 29 seconds after which a REST API gives up, because the
// functions' own time-out is shorter; the headers that it adds, renames or drops, except
// WWW-Authenticate; multiValueHeaders in a function's answer; authorizers, request
// validation, binary media types, {proxy+}, caching, the account's throttle over all its
// APIs, the defaults of gateway responses, and their variables except $context.requestId.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/local/template"
)

// Functions runs functions. *runtime.Lambda does.
type Functions interface {
	// Even if Invoke returns an error, the function may have done its work.
	Invoke(ctx context.Context, function string, event []byte) ([]byte, error)
}

// Config configures a gateway.
type Config struct {
	API       template.API
	Functions Functions
	// Pages, by exact path, are served to a GET or a HEAD if the API has no such route.
	Pages map[string]http.Handler
	// Log gets the reason why an answer is missing. The caller does not get it.
	Log *slog.Logger
}

// Gateway is an http.Handler.
type Gateway struct {
	config   Config
	throttle map[template.Route]*rate.Limiter
}

// New makes a gateway of the template's API.
func New(c Config) *Gateway {
	g := &Gateway{config: c, throttle: make(map[template.Route]*rate.Limiter)}
	for _, r := range c.API.Routes {
		if s := c.API.Setting(r); s.ThrottlingBurstLimit > 0 {
			g.throttle[r] = rate.NewLimiter(rate.Limit(s.ThrottlingRateLimit), s.ThrottlingBurstLimit)
		}
	}
	return g
}

// find finds the request's route and the values of its parameters. It compares the received
// path segment by segment; {name} matches any segment that is not empty. It decodes and
// cleans nothing, and a trailing slash counts as a segment.
func (g *Gateway) find(x *exchange) bool {
	given := strings.Split(x.path, "/")
	for _, r := range g.config.API.Routes {
		if r.Method != x.Method {
			continue
		}
		if parameters := match(strings.Split(r.Path, "/"), given); parameters != nil {
			x.route, x.parameters = r, parameters
			return true
		}
	}
	return false
}

// match returns the values of the parameters, or nil if the path does not fit.
func match(segments, given []string) map[string]string {
	if len(given) != len(segments) {
		return nil
	}
	parameters := make(map[string]string)
	for i, segment := range segments {
		name, isName := strings.CutPrefix(segment, "{")
		switch {
		case isName && given[i] != "":
			parameters[strings.TrimSuffix(name, "}")] = given[i]
		case segment != given[i]:
			return nil
		}
	}
	return parameters
}

// Server makes an HTTP server of the gateway.
func (g *Gateway) Server() *http.Server {
	return &http.Server{
		Handler:           g,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		// OPTIONS * gets the answer of any unknown route.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(g.config.Log.Handler(), slog.LevelDebug),
	}
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(r)
	if g.find(x) {
		x.send(w, g.respond(x))
		return
	}
	if page := g.config.Pages[x.path]; page != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		page.ServeHTTP(w, r)
		return
	}
	kind := missingAuthenticationToken
	if r.Header.Get("Authorization") != "" {
		kind = invalidSignature // a REST API looks for a signature of AWS's own kind
	}
	x.send(w, g.own(x, kind))
}

func (g *Gateway) respond(x *exchange) response {
	if limit := g.throttle[x.route]; limit != nil && !limit.Allow() {
		return g.own(x, throttled)
	}
	body, err := readBody(x.Body)
	if errors.Is(err, errTooLarge) {
		return g.own(x, requestTooLarge)
	}
	if err != nil {
		return g.own(x, badRequestBody)
	}
	given, err := g.invoke(x, body)
	if err == nil {
		return given
	}
	// The error may quote a function's answer, never the request.
	g.config.Log.Error("integration", "function", x.route.Function, "request_id", x.id, "error", err.Error())
	if errors.Is(err, runtime.ErrTooLarge) {
		return g.own(x, requestTooLarge)
	}
	return g.own(x, integrationFailure)
}

// invoke returns the function's response. A client that disconnects does not stop the
// function.
func (g *Gateway) invoke(x *exchange, body []byte) (response, error) {
	answer, err := g.config.Functions.Invoke(context.WithoutCancel(x.Context()), x.route.Function, g.event(x, body))
	if err != nil {
		return response{}, err
	}
	return readAnswer(answer)
}

// Event is what a function gets.
type Event struct {
	Function string // its logical id
	Payload  []byte
}

// Event returns the event of the function that serves the request.
func (g *Gateway) Event(r *http.Request) (Event, error) {
	x := newExchange(r)
	if !g.find(x) {
		return Event{}, errors.New("no operation has this method and path")
	}
	body, err := readBody(r.Body)
	return Event{x.route.Function, g.event(x, body)}, err
}
