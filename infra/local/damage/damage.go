// Package damage is the error of a state folder that lacks, or cannot read, something
// that was stored in it.
package damage

// Error is returned only if a file of the state folder was read and is wrong, or if
// something is missing that was made. A start that failed for another reason has
// another error.
type Error struct {
	Err error
	// Renewable is set if the next start makes the file again once it is removed.
	Renewable bool
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
