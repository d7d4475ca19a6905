package gateway

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// kind is a type of the gateway's own responses, with defaults for a type that the template
// does not declare.
type kind struct {
	name   string
	status int
	text   string
}

// The kinds that can occur on one machine.
var (
	missingAuthenticationToken = kind{"MISSING_AUTHENTICATION_TOKEN", http.StatusForbidden, "Missing Authentication Token"}
	throttled                  = kind{"THROTTLED", http.StatusTooManyRequests, "Too Many Requests"}
	requestTooLarge            = kind{"REQUEST_TOO_LARGE", http.StatusRequestEntityTooLarge, "Request Too Long"}
	badRequestBody             = kind{"BAD_REQUEST_BODY", http.StatusBadRequest, "Invalid request body"}
	integrationFailure         = kind{"INTEGRATION_FAILURE", http.StatusBadGateway, "Internal server error"}
	integrationTimeout         = kind{"INTEGRATION_TIMEOUT", http.StatusGatewayTimeout, "Endpoint request timed out"}
)

// own renders a response of the gateway's own. A kind that the template does not
// declare keeps its status and takes the rest from DEFAULT_4XX or DEFAULT_5XX.
func (g *Gateway) own(x *exchange, k kind) response {
	declared, ok := g.config.API.Responses[k.name]
	if !ok {
		fallback := "DEFAULT_4XX"
		if k.status >= http.StatusInternalServerError {
			fallback = "DEFAULT_5XX"
		}
		declared = g.config.API.Responses[fallback]
		declared.Status = k.status
	}
	if declared.Status == 0 {
		declared.Status = k.status
	}
	r := response{status: declared.Status, header: http.Header{}}
	for name, expression := range declared.Parameters.Headers {
		r.header.Set(name, x.parameter(k, expression))
	}
	body, ok := declared.Templates["application/json"]
	if !ok {
		body = `{"message":$context.error.messageString}`
	}
	r.body = variable.ReplaceAllStringFunc(body, func(name string) string {
		return x.variable(k, strings.TrimPrefix(name, "$context."))
	})
	return r
}

var variable = regexp.MustCompile(`\$context(\.[A-Za-z]+)+`)

// parameter evaluates the mapping expression of a header.
func (x *exchange) parameter(k kind, expression string) string {
	if name, ok := strings.CutPrefix(expression, "context."); ok {
		return x.variable(k, name)
	}
	return strings.Trim(expression, "'")
}

// variable is a variable of $context; one that has no value is empty.
func (x *exchange) variable(k kind, name string) string {
	switch name {
	case "requestId":
		return x.id
	case "extendedRequestId":
		return x.extended
	case "httpMethod":
		return x.method
	case "path":
		return x.path
	case "protocol":
		return x.protocol
	case "identity.sourceIp":
		return x.source
	case "error.message":
		return k.text
	case "error.messageString":
		return strconv.Quote(k.text)
	case "error.responseType":
		return k.name
	default:
		return ""
	}
}
