// Package acts has the operator's acts of several steps: suspend and resume an account, delete,
// purge and erase a workspace, replace and delete a key, inspect and repair the tables after a
// restore, and rewrap the credentials. It has no command line, no tables for people and no
// questions: a command parses, asks, calls an act and prints its result.
//
// An act may be interrupted at any call, and a repetition goes on. So of two writes the one
// comes first that leaves less access if the other is never made.
//
// It trusts its caller, who has asked the operator.
package acts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
)

// Journal gets the reports of an act.
type Journal interface {
	// Note writes a sentence for the operator.
	Note(format string, args ...any)
	// Record writes an audit line. attrs are names and values. After an error the line is lost.
	Record(ctx context.Context, action, outcome string, err error, attrs []any) error
}

// Stack has the stores that the acts change. None of its fields may be nil.
type Stack struct {
	Journal

	DB                            *dynamodb.Client // for whole tables
	AccessTable, CredentialsTable string
	Registry                      *auth.Registry
	Credentials                   *byok.Manager
	Files                         *files.Manager

	Now func() time.Time
	// Pause returns after the duration, or with the context's error.
	Pause func(context.Context, time.Duration) error
	lost  error
}

// Lost is the first failure to write an audit line, or nil.
func (s *Stack) Lost() error { return s.lost }

// Do makes one change, and writes its audit line. A *int among the attrs is read when the change
// has ended.
func (s *Stack) Do(ctx context.Context, action string, attrs []any, change func(context.Context) error) error {
	ctx = Watched(ctx)
	err := change(ctx)
	s.Audit(ctx, action, err, attrs)
	return err
}

// DoAll makes a change of many things like Do. It also writes an audit line when the change
// begins, because a killed process writes no other. If that line cannot be written, nothing is
// done.
func (s *Stack) DoAll(ctx context.Context, action string, attrs []any, change func(context.Context) error) error {
	if err := s.Record(ctx, action, "begun", nil, constant(attrs)); err != nil {
		return Refusal(err.Error() + "; nothing was done")
	}
	return s.Do(ctx, action, attrs, change)
}

// ErrUnchanged means that a change was needless: its object was in that state before. An audit line
// says so, without an error.
var ErrUnchanged = errors.New("unchanged")

// Audit writes the audit line of the change that the context watches. attrs name its objects by
// ids, never by secrets.
func (s *Stack) Audit(ctx context.Context, action string, err error, attrs []any) {
	outcome := outcome(ctx, err)
	if errors.Is(err, ErrUnchanged) {
		err = nil
	}
	read := slices.Clone(attrs)
	for i, value := range read {
		if n, ok := value.(*int); ok {
			read[i] = *n
		}
	}
	s.lost = cmp.Or(s.lost, s.Record(ctx, action, outcome, err, read))
}

// constant are the attrs that are known when a change begins.
func constant(attrs []any) (known []any) {
	for pair := range slices.Chunk(attrs, 2) {
		if _, counts := pair[1].(*int); !counts {
			known = append(known, pair...)
		}
	}
	return known
}

// outcome is also uncertain if an earlier attempt may have succeeded and a later one
// was refused.
func outcome(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, ErrUnchanged):
		return err.Error()
	case Code(err, Tried(ctx)) == Uncertain || of(ctx).unclear.Load():
		return "uncertain"
	default:
		return "refused"
	}
}

// Warn notes a warning, unless it is "".
func (s *Stack) Warn(warning string) {
	if warning != "" {
		s.Note("warning: %s", warning)
	}
}

// OrRepeat adds to an error the work that was done before it, and the advice to repeat the command.
// No repetition mends a finding.
func OrRepeat(ctx context.Context, err error, done string) error {
	if err == nil || !Tried(ctx) {
		return err
	}
	if !Is[Findings](err) {
		done += ". Repeat the command: it goes on"
	}
	return &Partial{Err: err, Done: done}
}

// ReadAccess reads the whole access table.
func (s *Stack) ReadAccess(ctx context.Context) (*auth.Survey, error) {
	return auth.ReadSurvey(ctx, s.DB, s.AccessTable)
}

// changeKeys tries a change of each key, until it is interrupted, and writes an audit line for each
// that still exists. It returns how many it changed, and the first failure. An interruption is one.
func (s *Stack) changeKeys(ctx context.Context, action string, keys []auth.Key, change func(context.Context, auth.Key) error) (changed int, failed error) {
	for _, key := range keys {
		one := Watched(ctx)
		err := change(one, key)
		if errors.Is(err, auth.ErrNoKey) {
			continue // deleted in between
		}
		s.Audit(one, action, err, []any{"account", key.Account, "key", key.Hash})
		if err == nil {
			changed++
		}
		failed = cmp.Or(failed, err, ctx.Err())
		if ctx.Err() != nil {
			break
		}
	}
	return changed, failed
}

// Split divides rows into those for which a condition holds and the others.
func Split[T any](rows []T, holds func(T) bool) (with, without []T) {
	for _, row := range rows {
		if holds(row) {
			with = append(with, row)
		} else {
			without = append(without, row)
		}
	}
	return with, without
}

// Sorted yields a map by its keys.
func Sorted[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// Count is a number with its noun, in singular or plural.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
