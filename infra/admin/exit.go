package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

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
	errLive    = errors.New("the workspace is live: delete it first")
	errNoState = errors.New("there is no stack.json")

	errNotConfirmed = errors.New("not confirmed: nothing was changed")

	errSealsElsewhere = errors.New("new credentials are sealed under")
	errGaveUp         = errors.New("too many moves in a row failed: gave up")
	errNotAllMoved    = errors.New("not all credentials could be moved")
)

// usageError is what is wrong with a command line that could be parsed.
type usageError string

func (e usageError) Error() string { return string(e) }

const (
	errNoTerminal    = usageError("this cannot be undone, and there is no terminal to confirm it on: repeat it with --yes; nothing was changed")
	errAmbiguous     = usageError("several keys begin with that: give more of the hash")
	errShortHash     = usageError("the key's hash is too short: give at least 8 characters of it")
	errNotHash       = usageError("that is not a key's hash: it has 64 hexadecimal characters, or give the first 8 or more (`admin key list`)")
	errNotCallerHash = usageError("that is not an API key's hash: give all its 64 digits, in lower case (`admin key list`)")
	errExpiresInAgo  = usageError("a key cannot expire before it is made")
	errRate          = usageError("--rate must be at least 1")
	errNoSource      = usageError("that is the stack's own key: name with --from the key to move from")
)

// exitCode classifies an error.
func exitCode(err error) int {
	if _, ok := errors.AsType[*kong.ParseError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	for code, kinds := range map[int][]error{
		exitUsage:    {auth.ErrInvalid, syncjobs.ErrInvalid, byok.ErrSameCredential},
		exitNotFound: {auth.ErrNoAccount, auth.ErrNoWorkspace, auth.ErrNoKey, syncjobs.ErrNotFound, byok.ErrNotFound, files.ErrNotFound},
		exitRefused: {auth.ErrWorkspaceDeleted, syncjobs.ErrState, files.ErrExists, errLive, errSealsElsewhere, errNotConfirmed,
			byok.ErrOtherProvider, byok.ErrOtherSettings, byok.ErrSuccessorDisabled},
	} {
		for _, kind := range kinds {
			if errors.Is(err, kind) {
				return code
			}
		}
	}
	return exitOther
}

// sentence is an error as a person reads it.
func sentence(err error) string {
	var api smithy.APIError
	var op *smithy.OperationError
	var network *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted; what was under way may have been done"
	case errors.Is(err, auth.ErrNoWorkspace):
		return "the account has no such workspace"
	case errors.Is(err, byok.ErrSameCredential):
		return err.Error() + ": name the old one, then the new one; nothing was changed"
	case errors.Is(err, byok.ErrOtherProvider):
		return err.Error() + ": create the new one for the same provider; nothing was changed"
	case errors.Is(err, byok.ErrSuccessorDisabled):
		return err.Error() + ": enable it first; nothing was changed"
	case errors.Is(err, byok.ErrOtherSettings):
		return err.Error() + ": create the new one with the same settings, or repeat it with --anyway; nothing was changed"
	case errors.As(err, &api) && errors.As(err, &op):
		return fmt.Sprintf("%s answered %s with %s: %s", op.ServiceID, op.OperationName, api.ErrorCode(), api.ErrorMessage())
	case errors.As(err, &network) && errors.As(err, &op):
		return fmt.Sprintf("%s could not be reached for %s: %v", op.ServiceID, op.OperationName, network.Err)
	}
	if _, ok := errors.AsType[*kong.ParseError](err); ok {
		return err.Error() + " (try --help)"
	}
	return err.Error()
}
