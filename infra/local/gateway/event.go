package gateway

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"signalbox.dev/infra/local/template"
)

// event is a REST API's proxy event, payload format 1.0. Every member is present. One
// without a value is null. As in a REST API, text that is not UTF-8 becomes U+FFFD when it
// is encoded.
type event struct {
	Resource   string              `json:"resource"`
	Path       string              `json:"path"`
	Method     string              `json:"httpMethod"`
	Headers    map[string]string   `json:"headers"`
	AllHeaders map[string][]string `json:"multiValueHeaders"`
	Query      map[string]string   `json:"queryStringParameters"`
	AllQuery   map[string][]string `json:"multiValueQueryStringParameters"`
	Parameters map[string]string   `json:"pathParameters"`
	Stage      map[string]string   `json:"stageVariables"`
	Context    requestContext      `json:"requestContext"`
	Body       *string             `json:"body"`
	IsBase64   bool                `json:"isBase64Encoded"`
}

type requestContext struct {
	AccountID         string   `json:"accountId"`
	APIID             string   `json:"apiId"`
	DomainName        string   `json:"domainName"`
	ExtendedRequestID string   `json:"extendedRequestId"`
	Method            string   `json:"httpMethod"`
	Identity          identity `json:"identity"`
	Path              string   `json:"path"`
	Protocol          string   `json:"protocol"`
	RequestID         string   `json:"requestId"`
	RequestTime       string   `json:"requestTime"`
	RequestTimeEpoch  int64    `json:"requestTimeEpoch"`
	ResourcePath      string   `json:"resourcePath"`
	Stage             string   `json:"stage"`
}

type identity struct {
	AccessKey *string `json:"accessKey"`
	AccountID *string `json:"accountId"`
	Caller    *string `json:"caller"`
	SourceIP  string  `json:"sourceIp"`
	User      *string `json:"user"`
	UserAgent *string `json:"userAgent"`
	UserARN   *string `json:"userArn"`
}

func (g *Gateway) event(r *http.Request, x *exchange, route template.Route, parameters map[string]string, body []byte) []byte {
	headers := eventHeaders(r, x)
	query := queryValues(x.query)
	e := event{
		Resource: route.Path, Path: x.path, Method: r.Method,
		Headers: last(headers), AllHeaders: headers,
		Query: last(query), AllQuery: query,
		Parameters: parameters, Stage: g.config.API.StageVariables,
		Context: requestContext{
			AccountID: g.config.Account, APIID: strings.ToLower(g.config.API.ID), DomainName: r.Host,
			ExtendedRequestID: x.extended, Method: r.Method,
			Identity: identity{SourceIP: x.source},
			Path:     x.path, Protocol: r.Proto, RequestID: x.id,
			RequestTime: x.time.Format("02/Jan/2006:15:04:05 -0700"), RequestTimeEpoch: x.time.UnixMilli(),
			ResourcePath: route.Path, Stage: g.config.API.Stage,
		},
	}
	if agent := r.UserAgent(); agent != "" {
		e.Context.Identity.UserAgent = &agent
	}
	if len(body) > 0 {
		text := string(body)
		e.Body = &text
	}
	// Text, numbers and maps of text always encode.
	encoded, _ := json.Marshal(e)
	return encoded
}

// dropped are the headers that a REST API keeps from a Lambda function ("Amazon
// API Gateway important notes", table of headers).
func dropped(name string) bool {
	switch name {
	case "Connection", "Content-Md5", "Expect", "Max-Forwards", "Proxy-Authenticate", "Server", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Www-Authenticate":
		return true
	}
	return false
}

func eventHeaders(r *http.Request, x *exchange) map[string][]string {
	headers := make(map[string][]string, len(r.Header)+5)
	for name, values := range r.Header {
		if !dropped(name) {
			headers[name] = values
		}
	}
	_, port, _ := net.SplitHostPort(r.Host)
	headers["Host"] = []string{r.Host}
	headers["X-Amzn-Trace-Id"] = []string{x.trace}
	headers["X-Forwarded-For"] = []string{strings.Join(append(slices.Clone(r.Header["X-Forwarded-For"]), x.source), ", ")}
	headers["X-Forwarded-Port"] = []string{port}
	headers["X-Forwarded-Proto"] = []string{"http"}
	return headers
}

// queryValues decodes a query string; it never fails. Text that cannot be decoded is kept.
// Names that become equal as UTF-8 are one.
func queryValues(query string) map[string][]string {
	var values map[string][]string
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		if values == nil {
			values = make(map[string][]string)
		}
		name = unescaped(name)
		values[name] = append(values[name], unescaped(value))
	}
	return values
}

func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		text = plain
	}
	return string([]rune(text)) // each byte that is not UTF-8 becomes U+FFFD
}

// last returns the map of single values: of several the last.
func last(all map[string][]string) map[string]string {
	if all == nil {
		return nil
	}
	single := make(map[string]string, len(all))
	for name := range maps.Keys(all) {
		single[name] = all[name][len(all[name])-1]
	}
	return single
}
