package gateway

import (
	"strings"

	"signalbox.dev/infra/local/template"
)

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
