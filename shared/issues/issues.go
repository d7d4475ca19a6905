// Package issues describes what is wrong with a request. An issue repeats nothing that the
// caller sent.
package issues

// Max is how many issues a response has at most. A body may have 32,000 of them.
const Max = 100

// Issue is one thing that is wrong with a request.
type Issue struct {
	// Path is a JSON pointer (RFC 6901) into the body; "" means the body as a
	// whole, or a header.
	Path string `json:"path"`
	// Reason is for programs. Message is for people.
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
}

// Reason is the kind of an issue.
type Reason string

// The reasons, as in infra/openapi.yaml.
const (
	Invalid       Reason = "invalid" // the value cannot be accepted
	Required      Reason = "required"
	UnknownMember Reason = "unknown_member"
	TooLarge      Reason = "too_large"  // the body, or a list or text over its bound
	Unknown       Reason = "unknown"    // the account has no such workspace or API key
	Full          Reason = "full"       // the workspace holds its bound
	KeyReused     Reason = "key_reused" // the idempotency key was used for another request
)
