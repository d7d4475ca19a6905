package template

import (
	"errors"
	"fmt"
	"strings"
)

// API is the AWS::Serverless::Api with its routes.
type API struct {
	// ID is the logical id.
	ID             string
	Stage          string
	StageVariables map[string]string
	Routes         []Route
	// Responses are the gateway responses by their type, for example
	// MISSING_AUTHENTICATION_TOKEN.
	Responses map[string]Response
	throttles []methodSetting
}

// Response is one entry of GatewayResponses.
type Response struct {
	Status int `yaml:"StatusCode"`
	// Parameters holds the headers as mapping expressions: 'text' in inner
	// quotes, or context.<name>.
	Parameters struct {
		Headers map[string]string `yaml:"Headers"`
	} `yaml:"ResponseParameters"`
	// Templates are bodies by content type.
	Templates map[string]string `yaml:"ResponseTemplates"`
}

// Throttle bounds a method: requests a second, and at one instant. The zero
// value means no bound.
type Throttle struct {
	Rate  float64
	Burst int
}

type methodSetting struct {
	Path   string  `yaml:"ResourcePath"`
	Method string  `yaml:"HttpMethod"`
	Rate   float64 `yaml:"ThrottlingRateLimit"`
	Burst  int     `yaml:"ThrottlingBurstLimit"`
}

// API returns the template's one API.
func (t *Template) API() (API, error) {
	declared, err := t.resources("AWS::Serverless::Api")
	if err != nil {
		return API{}, err
	}
	if len(declared) != 1 {
		return API{}, fmt.Errorf("the template declares %d APIs; one is needed", len(declared))
	}
	api := API{ID: declared[0].id}
	err = t.scope.decode(declared[0].properties, fields{
		"StageName":        &api.Stage,
		"Variables":        &api.StageVariables,
		"GatewayResponses": &api.Responses,
		"MethodSettings":   &api.throttles,
	})
	routes, routesErr := t.Routes()
	api.Routes = routes
	if err := errors.Join(err, routesErr); err != nil {
		return API{}, fmt.Errorf("%s: %w", api.ID, err)
	}
	return api, nil
}

// Throttle returns the method setting of a route: its own, else the one for all.
func (a API) Throttle(r Route) Throttle {
	var all, own *methodSetting
	for i, s := range a.throttles {
		// CloudFormation writes the slashes of a resource path as ~1.
		path := strings.Replace(strings.ReplaceAll(s.Path, "~1", "/"), "//", "/", 1)
		switch {
		case path == "/*" && s.Method == "*":
			all = &a.throttles[i]
		case path == r.Path && strings.EqualFold(s.Method, r.Method):
			own = &a.throttles[i]
		}
	}
	if own == nil {
		own = all
	}
	if own == nil {
		return Throttle{}
	}
	return Throttle{Rate: own.Rate, Burst: own.Burst}
}
