package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"signalbox.dev/infra/local/template"
	"signalbox.dev/shared/ids"
)

const (
	// MaxBody is the REST API's limit on a request's body.
	MaxBody = 10 << 20
	// drained is the number of further bytes that are read and thrown away, so that a client
	// that sends everything before it reads still gets the answer.
	drained = 64 << 20
)

var (
	errTooLarge  = errors.New("body larger than 10 MB")
	errMalformed = errors.New("malformed Lambda proxy response")
)

// exchange is a request with its id, its route and the values of its parameters.
type exchange struct {
	*http.Request
	// id is $context.requestId: always fresh.
	id     string
	path   string
	query  string
	source string
	// route and parameters are those that find has found.
	route      template.Route
	parameters map[string]string
}

// newExchange takes the path and the query unchanged from the request line.
func newExchange(r *http.Request) *exchange {
	x := &exchange{Request: r, id: ids.New[string]()}
	x.path, x.query, _ = strings.Cut(r.RequestURI, "?")
	x.source, _, _ = net.SplitHostPort(r.RemoteAddr)
	return x
}

func readBody(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, MaxBody+1))
	if err != nil {
		return nil, err
	}
	if len(body) > MaxBody {
		// The answer is the same whether or not the rest arrives.
		_, _ = io.CopyN(io.Discard, r, drained)
		return nil, errTooLarge
	}
	return body, nil
}

// response is the response to the client.
type response struct {
	status int
	header http.Header
	body   string
}

// readAnswer turns a function's answer into a response. The body is unchanged, because a
// REST API without binary media types decodes no base64.
func readAnswer(payload []byte) (response, error) {
	var answer events.APIGatewayProxyResponse
	if err := json.Unmarshal(payload, &answer); err != nil {
		// The decoder's error may quote the answer.
		return response{}, fmt.Errorf("%w: not JSON of the documented form", errMalformed)
	}
	if answer.StatusCode < 200 || answer.StatusCode > 599 {
		return response{}, fmt.Errorf("%w: status %d", errMalformed, answer.StatusCode)
	}
	r := response{status: answer.StatusCode, header: http.Header{}, body: answer.Body}
	for name, value := range answer.Headers {
		if strings.EqualFold(name, "WWW-Authenticate") {
			name = "x-amzn-Remapped-" + name // like a REST API
		}
		r.header.Set(name, value)
	}
	return r, nil
}

// send sends the response with the headers that every response has.
func (x *exchange) send(w http.ResponseWriter, r response) {
	header := w.Header()
	maps.Copy(header, r.header)
	header.Set("x-amzn-RequestId", x.id)
	if r.body != "" {
		if header.Get("Content-Type") == "" {
			header.Set("Content-Type", "application/json")
		}
		header.Set("Content-Length", strconv.Itoa(len(r.body)))
	}
	w.WriteHeader(r.status)
	// An error means that the client has disconnected, or that the status has no body.
	_, _ = io.WriteString(w, r.body)
}

// gatewayResponse is a response of the gateway's own: its type in the template, and the value
// of x-amzn-ErrorType, which API Gateway adds to customised ones too.
type gatewayResponse struct{ kind, errorType string }

// Those that can occur on one machine.
var (
	missingAuthenticationToken = gatewayResponse{"MISSING_AUTHENTICATION_TOKEN", "MissingAuthenticationTokenException"}
	invalidSignature           = gatewayResponse{"INVALID_SIGNATURE", "IncompleteSignatureException"}
	throttled                  = gatewayResponse{"THROTTLED", "TooManyRequestsException"}
	requestTooLarge            = gatewayResponse{"REQUEST_TOO_LARGE", "RequestTooLargeException"}
	badRequestBody             = gatewayResponse{"BAD_REQUEST_BODY", "BadRequestException"}
	integrationFailure         = gatewayResponse{"INTEGRATION_FAILURE", "InternalServerErrorException"}
)

// own renders a gateway response that the template declares. A type that the template does
// not declare gets an empty 500.
func (g *Gateway) own(x *exchange, own gatewayResponse) response {
	declared := g.config.API.GatewayResponses[own.kind]
	r := response{status: cmp.Or(declared.StatusCode, http.StatusInternalServerError), header: http.Header{}}
	r.header.Set("x-amzn-ErrorType", own.errorType)
	for name, expression := range declared.ResponseParameters.Headers {
		if expression == "context.requestId" {
			expression = x.id
		}
		r.header.Set(name, strings.Trim(expression, "'"))
	}
	r.body = strings.ReplaceAll(declared.ResponseTemplates["application/json"], "$context.requestId", x.id)
	return r
}
