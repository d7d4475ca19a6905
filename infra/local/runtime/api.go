package runtime

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// api is the Runtime API of one instance.
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
func (i *instance) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", i.serveNext)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", i.serveOutcome(io.ReadAll))
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", i.serveOutcome(readError))
	return mux
}

// serveNext waits for the next request and sends it to the process.
func (i *instance) serveNext(w http.ResponseWriter, r *http.Request) {
	var call *invocation
	select {
	case call = <-i.work:
	case <-r.Context().Done():
		return
	}
	i.current.Store(call)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Lambda-Runtime-Aws-Request-Id", call.id)
	header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(i.function.Timeout).UnixMilli(), 10))
	header.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:"+i.config.Region+":"+i.config.Account+":function:"+i.function.Name)
	header.Set("Content-Length", strconv.Itoa(len(call.payload)))
	// An error means that the process has ended. Its request fails anyway.
	_, _ = w.Write(call.payload)
}

// serveOutcome takes the outcome of the current request.
func (i *instance) serveOutcome(read func(io.Reader) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		call := i.current.Swap(nil)
		if call == nil || call.id != r.PathValue("id") {
			http.Error(w, `{"errorType":"InvalidRequestID","errorMessage":"not the request that was handed out"}`, http.StatusBadRequest)
			return
		}
		response, err := read(r.Body)
		_, failed := errors.AsType[*FunctionError](err)
		if err != nil && !failed {
			return // the process ended in the middle of its response
		}
		call.done <- outcome{response, err}
		w.WriteHeader(http.StatusAccepted)
	}
}

// readError reads a function's report of an error, and returns it.
func readError(r io.Reader) ([]byte, error) {
	var reported struct {
		Message string `json:"errorMessage"`
		Type    string `json:"errorType"`
	}
	if json.NewDecoder(r).Decode(&reported) != nil {
		reported.Message = "an error report that cannot be read"
	}
	return nil, &FunctionError{Type: reported.Type, Message: reported.Message}
}
