// Package exit has the two results of a failed command: the exit code for scripts, and the
// sentence for the operator.
package exit

import (
	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"

	"signalbox.dev/infra/admin/acts"
)

// Exit codes, for scripts.
const (
	Done      = 0
	Uncertain = 1 // it may have been done, or a part of it: check before you repeat it
	Usage     = 2 // the command line is wrong; nothing was done
	// After NotFound or Refused nothing was done, unless the response to a first attempt was lost.
	// Then the second attempt of a deletion finds nothing; the second attempt of an upload
	// or of a job's step is refused.
	NotFound = 3
	Refused  = 4 // the stored state forbids it
	Failed   = 5 // it failed before anything was changed
)

// Code returns the exit code for an error. tried means that something may have been changed.
func Code(err error, tried bool) int {
	if acts.Is[*kong.ParseError](err) {
		return Usage
	}
	return map[acts.Kind]int{
		acts.Failed: Failed, acts.Uncertain: Uncertain, acts.Usage: Usage, acts.NotFound: NotFound, acts.Refused: Refused,
	}[acts.KindOf(err, tried)]
}

// Message returns an error, which has this exit code, as a sentence for people.
func Message(err error, code int) string {
	switch {
	case acts.Is[*processcreds.ProviderError](err):
		return "there are no AWS credentials: the credential_process of the profile failed, and what it wrote may hold a secret. Run it yourself"
	case acts.Is[*kong.ParseError](err):
		return err.Error() + " (try --help)"
	}
	return acts.ErrorText(err, code == Failed)
}
