package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Otherwise has the engine apply the attempt and answers this instead of what
// it says.
func Otherwise(status int, body string) Fault {
	return after(func(r *http.Request, answer *http.Response) (*http.Response, error) {
		_ = answer.Body.Close()
		return response(r, status, answer.Header.Get("Content-Type"), []byte(body)), nil
	})
}

// Pretend answers this, and the engine never hears of the attempt.
func Pretend(status int, body string) Fault {
	return func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		return response(r, status, "", []byte(body)), nil
	}
}

// Bare has the engine apply the attempt and loses all headers of its answer.
func Bare() Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		answer.Header = http.Header{}
		return answer, nil
	})
}

// AnotherItem is the answer to a GetItem, had it asked for another item than it
// did.
func AnotherItem() Fault {
	return after(func(r *http.Request, answer *http.Response) (*http.Response, error) {
		var got struct{ Item map[string]any }
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			return nil, fmt.Errorf("reading the engine's answer: %w", err)
		}
		_ = answer.Body.Close()
		if got.Item == nil {
			got.Item = map[string]any{}
		}
		got.Item["pk"] = map[string]string{"S": "another#1"}
		body, err := json.Marshal(got)
		return response(r, http.StatusOK, answer.Header.Get("Content-Type"), body), err
	})
}
