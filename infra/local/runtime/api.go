package runtime

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// api is the Runtime API as one instance sees it.
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
func (i *instance) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", i.serveNext)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", i.serveResponse)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", i.serveError)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", i.serveInitError)
	return mux
}

// serveNext marks the process idle, and answers with its next request.
func (i *instance) serveNext(w http.ResponseWriter, r *http.Request) {
	if i.finished("") != nil {
		refuse(w, http.StatusForbidden, "InvalidStateTransition", "the last request has no answer yet")
		return
	}
	i.pool.offer(i)
	var call *invocation
	select {
	case call = <-i.work:
	case <-r.Context().Done():
		return
	}
	i.mu.Lock()
	i.current = call
	i.mu.Unlock()
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Lambda-Runtime-Aws-Request-Id", call.id)
	header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(call.deadline.UnixMilli(), 10))
	header.Set("Lambda-Runtime-Invoked-Function-Arn", i.arn)
	header.Set("Lambda-Runtime-Trace-Id", call.trace)
	header.Set("Content-Length", strconv.Itoa(len(call.payload)))
	// An error means that the process has ended, which fails its request anyway.
	_, _ = w.Write(call.payload)
}

// serveResponse takes the answer to the request.
func (i *instance) serveResponse(w http.ResponseWriter, r *http.Request) {
	call := i.finished(r.PathValue("id"))
	if call == nil {
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "not the request that was handed out")
		return
	}
	response, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxPayload))
	var tooLarge *http.MaxBytesError
	switch kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); {
	case errors.As(err, &tooLarge):
		call.done <- outcome{err: &FunctionError{Type: "Function.ResponseSizeTooLarge", Message: "response larger than 6 MB"}}
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "response larger than 6 MB")
		return
	case err != nil:
		// The process ended in the middle of its response.
		return
	case kind != "":
		call.done <- outcome{err: &FunctionError{Type: kind, Message: "the response broke off"}}
	default:
		call.done <- outcome{response: response}
	}
	w.WriteHeader(http.StatusAccepted)
}

// serveError takes the error that the function reports instead of an answer.
func (i *instance) serveError(w http.ResponseWriter, r *http.Request) {
	call := i.finished(r.PathValue("id"))
	if call == nil {
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "not the request that was handed out")
		return
	}
	call.done <- outcome{err: readError(w, r)}
	w.WriteHeader(http.StatusAccepted)
}

// serveInitError takes the reason why the process cannot start. The process ends
// next.
func (i *instance) serveInitError(w http.ResponseWriter, r *http.Request) {
	failed := readError(w, r)
	i.mu.Lock()
	i.failed = failed
	i.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
}

// finished takes the current request if it has this id. Without an id it only
// returns the current request.
func (i *instance) finished(id string) *invocation {
	i.mu.Lock()
	defer i.mu.Unlock()
	call := i.current
	if id == "" || call == nil {
		return call
	}
	if call.id != id {
		return nil
	}
	i.current = nil
	return call
}

func readError(w http.ResponseWriter, r *http.Request) *FunctionError {
	var reported struct {
		Message string `json:"errorMessage"`
		Type    string `json:"errorType"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxPayload)).Decode(&reported); err != nil {
		reported.Message = "an error report that cannot be read"
	}
	if reported.Type == "" {
		reported.Type = "Runtime.Unknown"
	}
	return &FunctionError{Type: reported.Type, Message: reported.Message}
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error means that the process has ended.
	_ = json.NewEncoder(w).Encode(map[string]string{"errorType": kind, "errorMessage": message})
}
