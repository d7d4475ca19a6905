package gateway

import (
	"errors"
	"io"
)

const (
	// MaxBody is the REST API's limit on a request's body.
	MaxBody = 10 << 20
	// drained is how many more bytes are read and thrown away: a client that sends
	// everything before it listens still gets the answer.
	drained = 64 << 20
)

var errTooLarge = errors.New("body larger than 10 MB")

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
