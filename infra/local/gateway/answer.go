package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

var errMalformed = errors.New("malformed Lambda proxy response")

// readAnswer turns a function's answer into a response. The body is unchanged: without binary media types a REST API decodes no base64.
func readAnswer(payload []byte) (response, error) {
	var answer struct {
		Status      int                 `json:"statusCode"`
		Header      map[string]string   `json:"headers"`
		MultiHeader map[string][]string `json:"multiValueHeaders"`
		Body        string              `json:"body"`
	}
	if err := json.Unmarshal(payload, &answer); err != nil {
		// The decoder's error may quote the answer.
		return response{}, fmt.Errorf("%w: not JSON of the documented form", errMalformed)
	}
	if answer.Status < 200 || answer.Status > 599 {
		return response{}, fmt.Errorf("%w: status %d", errMalformed, answer.Status)
	}
	r := response{status: answer.Status, header: http.Header{}, body: answer.Body}
	for name, values := range answer.MultiHeader {
		r.add(name, values...)
	}
	for name, value := range answer.Header {
		if !slices.Contains(answer.MultiHeader[name], value) {
			r.add(name, value)
		}
	}
	return r, nil
}

// add adds a header of the function's under the name that a REST API sends it
// out by ("Amazon API Gateway important notes", table of headers).
func (r *response) add(name string, values ...string) {
	switch http.CanonicalHeaderKey(name) {
	case "Expect", "Host", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Via":
		return
	case "Authorization", "Connection", "Content-Length", "Content-Md5", "Date", "Max-Forwards", "Server", "User-Agent",
		"Www-Authenticate", "X-Amzn-Requestid":
		name = "x-amzn-Remapped-" + name
	default:
		name = http.CanonicalHeaderKey(name)
	}
	r.header[name] = append(r.header[name], values...)
}
