package gateway

import (
	"cmp"
	"net/http"
	"strings"
)

// The types of gateway responses that can occur on one machine.
const (
	missingAuthenticationToken = "MISSING_AUTHENTICATION_TOKEN"
	throttled                  = "THROTTLED"
	requestTooLarge            = "REQUEST_TOO_LARGE"
	badRequestBody             = "BAD_REQUEST_BODY"
	integrationFailure         = "INTEGRATION_FAILURE"
)

// own renders a gateway response that the template declares. A type that the template does
// not declare gets an empty 500.
func (g *Gateway) own(x *exchange, kind string) response {
	declared := g.config.API.GatewayResponses[kind]
	r := response{status: cmp.Or(declared.StatusCode, http.StatusInternalServerError), header: http.Header{}}
	for name, expression := range declared.ResponseParameters.Headers {
		if expression == "context.requestId" {
			expression = x.id
		}
		r.header.Set(name, strings.Trim(expression, "'"))
	}
	r.body = strings.ReplaceAll(declared.ResponseTemplates["application/json"], "$context.requestId", x.id)
	return r
}
