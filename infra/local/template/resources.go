package template

import (
	"fmt"
	"strings"
)

// Function has the properties of an AWS::Serverless::Function, with Globals merged in.
type Function struct {
	Handler     string
	MemorySize  int
	Timeout     int // in seconds
	Environment struct{ Variables map[string]string }
}

// API has the properties of the AWS::Serverless::Api.
type API struct {
	Variables map[string]string
	// GatewayResponses have types such as MISSING_AUTHENTICATION_TOKEN.
	GatewayResponses map[string]GatewayResponse
	MethodSettings   []MethodSetting
	// Routes are the functions' events. They are not a property of the API.
	Routes []Route
}

// GatewayResponse is a response that the gateway sends by itself.
type GatewayResponse struct {
	StatusCode int
	// ResponseParameters has headers as mapping expressions: 'text' in inner quotes, or
	// context.<name>.
	ResponseParameters struct{ Headers map[string]string }
	// ResponseTemplates are bodies by content type.
	ResponseTemplates map[string]string
}

// MethodSetting bounds the requests of a method, in a second and at one instant.
type MethodSetting struct {
	ResourcePath         string
	HTTPMethod           string
	ThrottlingRateLimit  float64
	ThrottlingBurstLimit int
}

// Route sends a method and path of the REST API to a function.
type Route struct {
	Method, Path string
	Function     string // its logical id
}

// Declared returns all resources of a type that depends on no other resource, such as
// AWS::DynamoDB::Table, with the properties that are fields of P.
func Declared[P any](t *Template, kind string) ([]Resource[P], error) {
	return declared(scope{t, nil}, kind, *new(P), nil)
}

// Functions returns all functions. Their environments are resolved with the resources made.
func (t *Template) Functions(made Resources) ([]Resource[Function], error) {
	samDefaults := Function{MemorySize: 128, Timeout: 3}
	return declared(scope{t, made}, "AWS::Serverless::Function", samDefaults, member(member(t.root, "Globals"), "Function"))
}

// API returns the template's one API, with its routes.
func (t *Template) API() (API, error) {
	apis, err := Declared[API](t, "AWS::Serverless::Api")
	if err == nil && len(apis) != 1 {
		err = fmt.Errorf("the template declares %d APIs; one is needed", len(apis))
	}
	if err != nil {
		return API{}, err
	}
	api := apis[0].Properties
	api.Routes, err = t.routes(apis[0].ID)
	return api, err
}

// routes returns the functions' Api events.
func (t *Template) routes(api string) (routes []Route, err error) {
	type events struct {
		Events map[string]struct {
			Type       string
			Properties Route
		}
	}
	functions, err := declared(scope{t, Resources{api: {"Ref": "local"}}}, "AWS::Serverless::Function", events{}, nil)
	for _, f := range functions {
		for _, event := range f.Properties.Events {
			if event.Type == "Api" {
				routes = append(routes, Route{strings.ToUpper(event.Properties.Method), event.Properties.Path, f.ID})
			}
		}
	}
	return routes, err
}

// Setting returns the route's own method setting, or else the setting for all routes.
func (a API) Setting(r Route) MethodSetting {
	// CloudFormation writes the slashes of a resource path as ~1.
	own := "/" + strings.ReplaceAll(r.Path, "/", "~1")
	var all MethodSetting
	for _, s := range a.MethodSettings {
		switch {
		case s.ResourcePath == own && strings.EqualFold(s.HTTPMethod, r.Method):
			return s
		case s.ResourcePath == "/*":
			all = s
		}
	}
	return all
}
