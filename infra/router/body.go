package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"
)

// bodies reads bodies, which are in memory while they are read. The sum of the large ones is
// bounded, so they wait for each other; a router sends a body that it has whole.
type bodies struct {
	longest int64 // in bytes
	room    *semaphore.Weighted
}

const (
	longestAtOnce = 4        // bodies of the greatest size that are read at once
	small         = 64 << 10 // bytes of a body that waits for no large one; connections bound these
)

func newBodies(longest int64) bodies {
	return bodies{longest, semaphore.NewWeighted(longestAtOnce * longest)}
}

// read returns a body's content. Its error is an *http.MaxBytesError, that of the
// context or the connection, or errMalformed.
func (b bodies) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (content, error) {
	size := r.ContentLength
	if size < 0 || size > b.longest { // -1 is unknown
		size = b.longest
	}
	if size > small {
		if err := b.room.Acquire(ctx, size); err != nil {
			return content{}, err
		}
		defer b.room.Release(size)
	}
	var text bytes.Buffer
	text.Grow(int(size) + bytes.MinRead) // for the read that finds the end
	if _, err := text.ReadFrom(http.MaxBytesReader(w, r.Body, b.longest)); err != nil {
		return content{}, err
	}
	return parse(&text)
}

var errMalformed = errors.New("the body is not a JSON object with one model")

// content is a request, as its plan needs it.
type content struct {
	model  string
	userID string // of a header
	// followsUp reports whether the body names state of an earlier request, which is the
	// account's at one provider.
	followsUp bool
}

// parse parses one JSON object with one member "model". A name that differs only in case
// counts as a second one, because some providers would read it.
func parse(body *bytes.Buffer) (c content, err error) {
	d := jsontext.NewDecoder(body, jsontext.AllowDuplicateNames(true))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return content{}, errMalformed
	}
	hasModel := false
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return content{}, errMalformed
		}
		name := token.String()
		if !strings.EqualFold(name, "model") {
			isState := strings.EqualFold(name, "previous_response_id") || strings.EqualFold(name, "conversation")
			c.followsUp = c.followsUp || isState && d.PeekKind() != 'n' // not null
			if d.SkipValue() != nil {
				return content{}, errMalformed
			}
			continue
		}
		value, err := d.ReadToken()
		if err != nil || hasModel || name != "model" || value.Kind() != '"' {
			return content{}, errMalformed
		}
		c.model, hasModel = value.String(), true
	}
	_, err = d.ReadToken() // the object's end
	if _, end := d.ReadToken(); err != nil || !errors.Is(end, io.EOF) || c.model == "" {
		return content{}, errMalformed
	}
	return c, nil
}
