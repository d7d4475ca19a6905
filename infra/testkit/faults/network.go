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

// Refuse fails the attempt before the engine hears of it, as a connection that
// is refused does.
func Refuse() Fault {
	return func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
}

// LoseAnswer has the engine apply the attempt and then resets the connection.
func LoseAnswer() Fault {
	return after(func(*http.Request, *http.Response) (*http.Response, error) {
		return nil, reset()
	})
}

// Stall holds the attempt back until its deadline; the engine never hears of it.
func Stall() Fault {
	return func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		return nil, wait(r)
	}
}

// StallAnswer has the engine apply the attempt and holds the answer back until
// the deadline.
func StallAnswer() Fault {
	return after(func(r *http.Request, _ *http.Response) (*http.Response, error) {
		return nil, wait(r)
	})
}

// TimeOut ends the attempt, which the engine never hears of, by the time-out of
// attempts: the request itself has time left.
func TimeOut() Fault {
	return func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
		return nil, timedOut()
	}
}

// TimeOutAnswer has the engine apply the attempt and ends it by the time-out of
// attempts.
func TimeOutAnswer() Fault {
	return after(func(*http.Request, *http.Response) (*http.Response, error) { return nil, timedOut() })
}

// CutAnswer has the engine apply the attempt and cuts the connection half way
// through the answer's body; where it has none, before the answer is whole.
func CutAnswer() Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		body, err := io.ReadAll(answer.Body)
		if err != nil || len(body) == 0 {
			return nil, reset()
		}
		answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(string(body[:len(body)/2])), brokenReader{}))
		return answer, nil
	})
}

// Garble has the engine apply the attempt and makes nonsense of the answer.
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

// EmptyAnswer has the engine apply the attempt and loses the body of its answer;
// of an error nothing is left.
func EmptyAnswer() Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		if answer.StatusCode >= http.StatusMultipleChoices {
			return nil, reset()
		}
		_ = answer.Body.Close()
		answer.Header.Del("X-Amz-Crc32") // by which the SDK would know
		answer.Body, answer.ContentLength = http.NoBody, -1
		return answer, nil
	})
}

// Then has the engine apply the attempt and calls f before the answer is
// passed on: for what happens between two calls of a request.
func Then(f func()) Fault {
	return after(func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		f()
		return answer, nil
	})
}

// after lets the engine apply the attempt and f decide what becomes of its answer.
func after(f func(*http.Request, *http.Response) (*http.Response, error)) Fault {
	return func(r *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
		answer, err := apply()
		if err != nil {
			return nil, fmt.Errorf("the engine itself failed: %w", err)
		}
		passed, err := f(r, answer)
		if passed == nil {
			_ = answer.Body.Close()
		}
		return passed, err
	}
}

// wait waits for the deadline of the request, which must have one.
func wait(r *http.Request) error {
	if _, ok := r.Context().Deadline(); !ok {
		return errors.New("a stalled call needs a deadline")
	}
	<-r.Context().Done()
	return r.Context().Err()
}

func reset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// timedOut is an error such as http.Transport's for a response header that does
// not come in time.
func timedOut() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
}

// brokenReader is the end of a body whose connection was cut.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
