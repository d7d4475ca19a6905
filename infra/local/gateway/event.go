package gateway

import (
	"encoding/json"
	"maps"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// event is a REST API's proxy event, payload format 1.0, without members that API Gateway
// adds and no function reads. When text that is not UTF-8 is encoded, it becomes U+FFFD,
// as in a REST API.
func (g *Gateway) event(x *exchange, body []byte) []byte {
	headers := maps.Clone(x.Header)
	headers.Set("Host", x.Host)
	query := queryValues(x.query)
	// Text, numbers and maps of text always encode.
	encoded, _ := json.Marshal(events.APIGatewayProxyRequest{
		Resource: x.route.Path, Path: x.path, HTTPMethod: x.Method,
		Headers: last(headers), MultiValueHeaders: headers,
		QueryStringParameters: last(query), MultiValueQueryStringParameters: query,
		PathParameters: x.parameters, StageVariables: g.config.API.Variables,
		RequestContext: events.APIGatewayProxyRequestContext{RequestID: x.id, Identity: events.APIGatewayRequestIdentity{SourceIP: x.source}},
		Body:           string(body),
	})
	return encoded
}

// queryValues decodes a query string and never fails. It keeps text that cannot be decoded.
// If two names become equal as UTF-8, they count as one.
func queryValues(query string) map[string][]string {
	values := make(map[string][]string)
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
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

// last returns the map of single values. If a name has several, it has the last.
func last(all map[string][]string) map[string]string {
	single := make(map[string]string, len(all))
	for name, values := range all {
		single[name] = values[len(values)-1]
	}
	return single
}
