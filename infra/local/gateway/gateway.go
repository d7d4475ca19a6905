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
	routes   []route
	throttle map[template.Route]*rate.Limiter
}

// New makes a gateway of the template's API.
func New(c Config) *Gateway {
	g := &Gateway{config: c, throttle: make(map[template.Route]*rate.Limiter)}
	for _, r := range c.API.Routes {
		g.routes = append(g.routes, newRoute(r))
		if s := c.API.Setting(r); s.ThrottlingBurstLimit > 0 {
			g.throttle[r] = rate.NewLimiter(rate.Limit(s.ThrottlingRateLimit), s.ThrottlingBurstLimit)
		}
	}
	return g
}

// route is a route with its path in segments. {name} matches any segment that is
// not empty.
type route struct {
	template.Route
	segments []string
}

func newRoute(r template.Route) route {
	return route{Route: r, segments: strings.Split(r.Path, "/")}
}

// find matches the received path. It decodes and cleans nothing, and a trailing slash
// counts as a segment.
func (g *Gateway) find(method, path string) (template.Route, map[string]string, bool) {
	given := strings.Split(path, "/")
	for _, r := range g.routes {
		if r.Method != method {
			continue
		}
		if parameters, ok := r.match(given); ok {
			return r.Route, parameters, true
		}
	}
	return template.Route{}, nil, false
}

func (r route) match(given []string) (map[string]string, bool) {
	if len(given) != len(r.segments) {
		return nil, false
	}
	parameters := make(map[string]string)
	for i, segment := range r.segments {
		name, isName := strings.CutPrefix(segment, "{")
		switch {
		case isName && given[i] != "":
			parameters[strings.TrimSuffix(name, "}")] = given[i]
		case segment != given[i]:
			return nil, false
		}
	}
	return parameters, true
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
	route, parameters, ok := g.find(r.Method, x.path)
	if ok {
		x.send(w, g.respond(r, x, route, parameters))
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

func (g *Gateway) respond(r *http.Request, x *exchange, route template.Route, parameters map[string]string) response {
	if limit := g.throttle[route]; limit != nil && !limit.Allow() {
		return g.own(x, throttled)
	}
	body, err := readBody(r.Body)
	if errors.Is(err, errTooLarge) {
		return g.own(x, requestTooLarge)
	}
	if err != nil {
		return g.own(x, badRequestBody)
	}
	// A client that disconnects does not stop the function.
	answer, err := g.config.Functions.Invoke(context.WithoutCancel(r.Context()), route.Function, g.event(r, x, route, parameters, body))
	if err == nil {
		var given response
		if given, err = readAnswer(answer); err == nil {
			return given
		}
	}
	// The error may quote a function's answer, never the request.
	g.config.Log.Error("integration", "function", route.Function, "requestId", x.id, "error", err.Error())
	if errors.Is(err, runtime.ErrTooLarge) {
		return g.own(x, requestTooLarge)
	}
	return g.own(x, integrationFailure)
}

// Event returns the logical id of the function that serves the request, and the
// event that it gets.
func (g *Gateway) Event(r *http.Request) (function string, event []byte, err error) {
	x := newExchange(r)
	route, parameters, ok := g.find(r.Method, x.path)
	if !ok {
		return "", nil, errors.New("no operation has this method and path")
	}
	body, err := readBody(r.Body)
	if err != nil {
		return "", nil, err
	}
	return route.Function, g.event(r, x, route, parameters, body), nil
}
