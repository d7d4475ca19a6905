package faults

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// Refuse fails the attempt before it reaches the engine, as a refused connection
// does.
func Refuse() Fault { return before(networkError(syscall.ECONNREFUSED)) }

// TimeOut fails the attempt, which does not reach the engine, by the time-out of
// attempts: the request itself has time left.
func TimeOut() Fault { return before(networkError(os.ErrDeadlineExceeded)) }

// LoseAnswer lets the engine apply the attempt and then resets the connection.
func LoseAnswer() Fault {
	return after(func(*http.Request, *http.Response) (*http.Response, error) {
		return nil, networkError(syscall.ECONNRESET)
	})
}

// TimeOutAnswer lets the engine apply the attempt and fails it by the time-out of
// attempts.
func TimeOutAnswer() Fault {
	return after(func(*http.Request, *http.Response) (*http.Response, error) {
		return nil, networkError(os.ErrDeadlineExceeded)
	})
}

// CutAnswer lets the engine apply the attempt and cuts the connection half way through
// the answer's body. Without a body, it cuts the connection before the answer is
// complete.
func CutAnswer() Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		body, err := io.ReadAll(answer.Body)
		if err != nil || len(body) == 0 {
			return nil, networkError(syscall.ECONNRESET)
		}
		answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(string(body[:len(body)/2])), brokenReader{}))
		return answer, nil
	})
}

// Garble lets the engine apply the attempt and makes the answer unreadable.
func Garble() Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		body, err := io.ReadAll(answer.Body)
		if err != nil || len(body) == 0 {
			return nil, errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x00\x00"`)
		}
		answer.Header = http.Header{"Content-Type": answer.Header["Content-Type"]}
		answer.ContentLength = -1
		answer.Body = io.NopCloser(strings.NewReader("<{[\x00" + string(body[:len(body)/2])))
		return answer, nil
	})
}

// EmptyAnswer lets the engine apply the attempt and removes the body of its answer;
// an error is lost as a whole.
func EmptyAnswer() Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		if answer.StatusCode >= http.StatusMultipleChoices {
			return nil, networkError(syscall.ECONNRESET)
		}
		_ = answer.Body.Close()
		answer.Header.Del("X-Amz-Crc32") // by which the SDK would notice
		answer.Body, answer.ContentLength = http.NoBody, -1
		return answer, nil
	})
}

// NoHeaders lets the engine apply the attempt and removes all headers of its answer.
func NoHeaders() Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		answer.Header = http.Header{}
		return answer, nil
	})
}

// Then lets the engine apply the attempt and calls f before the answer is passed on: f
// happens between two calls of a request.
func Then(f func()) Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		f()
		return answer, nil
	})
}

// before fails the attempt with the error before it reaches the engine.
func before(err error) Fault {
	return func(*http.Request, Apply) (*http.Response, error) { return nil, err }
}

// after lets the engine apply the attempt, and f change the answer.
func after(f func(*http.Request, *http.Response) (*http.Response, error)) Fault {
	return func(r *http.Request, apply Apply) (*http.Response, error) {
		answer, err := apply()
		if err != nil {
			return nil, fmt.Errorf("the engine itself failed: %w", err)
		}
		changed, err := f(r, answer)
		if changed != answer {
			_ = answer.Body.Close()
		}
		return changed, err
	}
}

func networkError(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} }

// brokenReader is the end of a body after its connection was cut.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
