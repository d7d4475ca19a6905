package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"signalbox.dev/infra/test/kit"
)

// A body has its place while it is read, however that ends, and a large one waits for its turn.
func TestBodiesAreReadInTurn(t *testing.T) {
	const longest = 4 * small
	b := newBodies(longest)
	hasRoom := func(n int64) bool {
		ok := b.room.TryAcquire(n)
		if ok {
			b.room.Release(n)
		}
		return ok
	}
	read := func(ctx context.Context, body io.Reader, length int64) (content, error) {
		during := readerFunc(func(p []byte) (int, error) {
			if hasRoom(longestAtOnce*longest - int64(min(uint64(length), longest)) + 1) { //nolint:gosec // -1 is more
				t.Errorf("a body of %d bytes has no place of its own", length)
			}
			return body.Read(p)
		})
		r := httptest.NewRequest(http.MethodPost, "/plan", during)
		r.ContentLength = length
		return b.read(ctx, httptest.NewRecorder(), r)
	}
	sound := `{"x":"` + strings.Repeat("é", small) + `","model":"m"}`
	for name, c := range map[string]struct {
		body    io.Reader
		length  int64
		isSound bool
	}{
		"a body":                   {iotest.OneByteReader(strings.NewReader(sound)), int64(len(sound)), true},
		"one of unknown length":    {strings.NewReader(sound), -1, true},
		"a malformed one":          {strings.NewReader(sound + "{"), int64(len(sound)) + 1, false},
		"one of a broken sequence": {strings.NewReader(strings.Replace(sound, "é", "\xff", 1)), -1, false},
		"too large a one":          {strings.NewReader(sound + strings.Repeat(" ", longest)), 2 * longest, false},
		"one that breaks off":      {io.MultiReader(strings.NewReader(sound), iotest.ErrReader(errors.New("gone"))), -1, false},
	} {
		if read, err := read(t.Context(), c.body, c.length); (err == nil) != c.isSound || c.isSound && read.model != "m" {
			t.Errorf("%s: %q, %v", name, read.model, err)
		}
		if !hasRoom(longestAtOnce * longest) {
			t.Fatalf("%s keeps its place", name)
		}
	}
	kit.Must(t, b.room.Acquire(t.Context(), longestAtOnce*longest))
	small := httptest.NewRequest(http.MethodPost, "/plan", strings.NewReader(`{"model":"m"}`))
	if _, err := b.read(t.Context(), httptest.NewRecorder(), small); err != nil {
		t.Errorf("a small body beside large ones: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := read(ended, strings.NewReader(sound), int64(len(sound))); !errors.Is(err, context.Canceled) {
		t.Errorf("a large body beside large ones: %v", err)
	}
}

// A body is one object with one model. A name that differs in case, or is written with an
// escape, is the same name. A request that names state of an earlier one follows it up.
func TestParse(t *testing.T) {
	for _, body := range []string{
		``, `["model","n"]`, `{"x":{"model":"n"}}`, `{"model":""}`, `{"model":1}`, `{"model":"n","model":"n"}`, `{"model":"n","m\u006fdel":"m"}`,
		`{"Model":"m","model":"n"}`, `{"MODEL":"n"}`, `{"model":"n"}{}`, `{"model":"n"`,
	} {
		if c, err := parse(bytes.NewBufferString(body)); err == nil {
			t.Errorf("%s: %+v", body, c)
		}
	}
	for members, followsUp := range map[string]bool{
		`"previous_response_id":"r"`: true, `"previous\u005fresponse_id":"r"`: true, `"Conversation":{"id":"c"}`: true, `"conversation":"c","conversation":null`: true,
		`"previous_response_id":null,"conversation":null`: false, `"input":{"previous_response_id":"r"}`: false,
	} {
		if c, err := parse(bytes.NewBufferString(`{"model":"m",` + members + `}`)); err != nil || c != (content{"m", "", followsUp}) {
			t.Errorf("%s: %+v, %v", members, c, err)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
