package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
)

// confirmation is what a command asks for that destroys something for good.
type confirmation struct {
	Yes bool `help:"Do not ask. Needed where no terminal is there to ask on."`
}

// subject is what would be destroyed.
type subject struct {
	// effect completes "This …".
	effect string
	// names are what it can be confirmed by, its id among them.
	names []string
}

// confirm returns nil if the operator has typed a name of the subject, or said
// --yes; it then asks nothing and find is not called. Nothing was done where it
// returns an error.
func (c confirmation) confirm(ctx context.Context, s *session, find func() (subject, error)) error {
	if c.Yes {
		return nil
	}
	if !s.interactive {
		return errNoTerminal
	}
	what, err := find()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.stderr, "This %s.\nType its name or id to confirm: ", what.effect)
	typed, err := s.line(ctx)
	if err != nil || typed == "" || !slices.Contains(what.names, typed) {
		return errNotConfirmed
	}
	return nil
}

// line reads a line of standard input, and waits no longer than the context
// lasts.
func (s *session) line(ctx context.Context) (string, error) {
	type read struct {
		text string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := bufio.NewReader(s.stdin).ReadString('\n')
		done <- read{strings.TrimSpace(text), err}
	}()
	select {
	case <-ctx.Done():
		_, _ = fmt.Fprintln(s.stderr) // the prompt's line has no end yet
		return "", ctx.Err()
	case r := <-done:
		if r.err != nil {
			_, _ = fmt.Fprintln(s.stderr)
		}
		return r.text, r.err
	}
}

// named is how a prompt names a thing that has a name and an id.
func named(kind, name, id string) string {
	return fmt.Sprintf("%s %q (%s)", kind, name, id)
}
