package acts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/aws/smithy-go"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/syncjobs"
)

// UsageError is a mistake of the operator.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// Refusal is the reason why the stored state forbids an act.
type Refusal string

func (e Refusal) Error() string { return string(e) }

// Findings are left for the operator, who must look at them.
type Findings string

func (e Findings) Error() string { return string(e) }

// Partial is the error of an act that did a part of its work.
type Partial struct {
	Err  error
	Done string
}

func (e *Partial) Error() string { return e.Err.Error() + "; " + e.Done }

func (e *Partial) Unwrap() error { return e.Err }

// Is reports whether an error of this type is in the chain.
func Is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// The meanings of an error for the operator. They are the exit codes of a command, for scripts.
const (
	Done      = 0
	Uncertain = 1 // it may have been done, or a part of it: check before you repeat it
	Usage     = 2 // the operator asked for what cannot be; nothing was done
	// After NotFound or Refused nothing was done, unless the response to a first attempt was lost.
	// Then the second attempt of a deletion finds nothing; the second attempt of an upload
	// or of a job's step is refused.
	NotFound = 3
	Refused  = 4 // the stored state forbids it
	Failed   = 5 // it failed before anything was changed
)

// Code classifies an error. tried means that something may have been changed.
func Code(err error, tried bool) int {
	isOneOf := func(known ...error) bool {
		return slices.ContainsFunc(known, func(one error) bool { return errors.Is(err, one) })
	}
	switch {
	case Is[UsageError](err), isOneOf(auth.ErrInvalid, syncjobs.ErrInvalid, byok.ErrSameCredential):
		return Usage
	case isOneOf(auth.ErrNoAccount, auth.ErrNoWorkspace, auth.ErrNoKey, syncjobs.ErrNotFound, byok.ErrNotFound, files.ErrNotFound):
		return NotFound
	case Is[Refusal](err),
		isOneOf(auth.ErrWorkspaceDeleted, auth.ErrSuspended, auth.ErrNeedless, syncjobs.ErrState, files.ErrExists),
		isOneOf(byok.ErrOtherProvider, byok.ErrOtherSettings, byok.ErrSuccessorDisabled):
		return Refused
	case tried, Is[Findings](err):
		return Uncertain
	}
	return Failed
}

// ErrorText returns an error as a sentence for people. unchanged means that nothing was changed.
func ErrorText(err error, unchanged bool) string {
	var api smithy.APIError
	var op *smithy.OperationError
	var network *url.Error
	if partial, ok := errors.AsType[*Partial](err); ok {
		return ErrorText(partial.Err, unchanged) + "; " + partial.Done
	}
	switch {
	case errors.Is(err, context.Canceled) && unchanged:
		return "interrupted; nothing was changed"
	case errors.Is(err, context.Canceled):
		return "interrupted; what was under way may have been done"
	case errors.Is(err, auth.ErrNoWorkspace):
		return "the account has no such workspace"
	case errors.Is(err, calls.ErrDamaged):
		return err.Error() + "; put its row right: `admin restore check` says what is damaged"
	case errors.As(err, &api) && errors.As(err, &op):
		return fmt.Sprintf("%s answered %s with %s: %s", op.ServiceID, op.OperationName, api.ErrorCode(), api.ErrorMessage())
	case errors.As(err, &network) && errors.As(err, &op):
		return fmt.Sprintf("%s could not be reached for %s: %v", op.ServiceID, op.OperationName, network.Err)
	}
	for known, advice := range map[error]string{
		auth.ErrSuspended: "`admin account enable` ends that", byok.ErrSameCredential: "name the old one, then the new one",
		byok.ErrOtherProvider: "create the new one for the same provider", byok.ErrSuccessorDisabled: "enable it first",
		byok.ErrOtherSettings: "create the new one with the same settings",
	} {
		if errors.Is(err, known) {
			return err.Error() + ": " + advice + "; nothing was changed"
		}
	}
	return err.Error()
}
