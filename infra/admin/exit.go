package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/aws/smithy-go"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/syncjobs"
)

// Exit codes, for scripts.
const (
	exitDone     = 0
	exitOther    = 1 // it may have been done, or in part: look before repeating
	exitUsage    = 2 // the command line makes no sense; nothing was done
	exitNotFound = 3 // nothing was done
	exitRefused  = 4 // nothing was done: the state of things forbids it
)

var (
	errLive         = errors.New("the workspace is live: delete it first")
	errAmbiguous    = errors.New("several keys begin with that: write more of the hash")
	errNotRunning   = errors.New("the local edition is not running: start it with `make run`, or name a deployed stack with --stack")
	errExpiresInAgo = errors.New("a key cannot expire before it is made")

	errRate           = errors.New("at least one credential a second")
	errNoSource       = errors.New("that is the stack's own key: say with --from where to move from")
	errSealsElsewhere = errors.New("new credentials are sealed under")
	errGaveUp         = errors.New("too many moves in a row failed: gave up")
	errNotAllMoved    = errors.New("not all credentials could be moved")
)

// exitCode classifies an error.
func exitCode(err error) int {
	if _, ok := errors.AsType[*kong.ParseError](err); ok {
		return exitUsage
	}
	for code, kinds := range map[int][]error{
		exitUsage:    {auth.ErrInvalid, syncjobs.ErrInvalid, errAmbiguous, errExpiresInAgo, errRate, errNoSource},
		exitNotFound: {auth.ErrNoAccount, auth.ErrNoWorkspace, auth.ErrNoKey, syncjobs.ErrNotFound, byok.ErrNotFound, files.ErrNotFound},
		exitRefused:  {auth.ErrWorkspaceDeleted, syncjobs.ErrState, files.ErrExists, errLive, errSealsElsewhere},
	} {
		for _, kind := range kinds {
			if errors.Is(err, kind) {
				return code
			}
		}
	}
	return exitOther
}

// sentence tells an error to a person.
func sentence(err error) string {
	var api smithy.APIError
	var op *smithy.OperationError
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted; what was under way may have been done"
	case errors.Is(err, syscall.ECONNREFUSED):
		return errNotRunning.Error()
	case errors.Is(err, auth.ErrNoWorkspace):
		return "the account has no such workspace"
	case errors.As(err, &api) && errors.As(err, &op):
		return fmt.Sprintf("%s answered %s with %s: %s", op.ServiceID, op.OperationName, api.ErrorCode(), api.ErrorMessage())
	}
	if _, ok := errors.AsType[*kong.ParseError](err); ok {
		return err.Error() + " (try --help)"
	}
	return err.Error()
}
