// Package damage is the error of a state folder if something that was stored in it is
// missing or unreadable.
package damage

// Error is returned only if a file of the state folder was read and is wrong, or if
// something that an earlier start made is missing. A start that failed for another reason
// has another error.
type Error struct {
	Err error
	// Renewable is set if the user may remove the file: the next start then makes it again.
	Renewable bool
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
