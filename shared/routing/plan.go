// Package routing is what the flags and allow-lists of stored credentials mean to
// a router: which credentials a request may use, in which order, and whether the
// platform's shared endpoint of a provider may be used at all. NewPlan is that
// meaning as a pure function, the reference for other implementations. Reader
// applies it to what is stored and opens the keys that a plan names.
//
// It is for the platform's router, which runs under a role of its own. No Lambda
// function links this package: none of them may read a credential.
package routing

import (
	"cmp"
	"slices"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// Request is what a router knows of one request for a model.
type Request struct {
	// Model is the model's slug, compared byte for byte with allowed_models.
	Model string
	// APIKeyHash is the lower-case hexadecimal SHA-256 of the calling API key.
	APIKeyHash string
	// UserID is the user on whose behalf the key calls; "" where that is unknown,
	// which no allowed_user_ids admits.
	UserID string
	// Providers are the candidate providers in the router's order. A repeated one
	// counts where it comes first.
	Providers []string
}

// Plan is how a request may be served: its steps are tried in order. Which failure
// of a step moves on to the next one is the router's decision. A plan without
// steps means that the request is refused.
type Plan struct {
	Steps []Step
	// Skipped are the credentials of candidate providers that are in no step.
	Skipped []Skipped
	// Removed are the candidate providers whose shared endpoint is in no step.
	Removed []Removed
}

// Step is one attempt at one provider.
type Step struct {
	Provider string
	// Credential is the credential to use, or "" for the shared endpoint of the
	// provider, which spends the platform's credit.
	Credential ids.Credential
}

// IsShared reports whether the step uses the provider's shared endpoint.
func (s Step) IsShared() bool { return s.Credential == "" }

// Reason is why a credential is not used for a request.
type Reason string

// The reasons in the order in which they are looked for; the first that holds is
// the one reported.
const (
	SkippedDisabled Reason = "disabled"
	SkippedModel    Reason = "model"   // allowed_models does not contain the model
	SkippedAPIKey   Reason = "api_key" // allowed_api_key_hashes does not contain the hash
	SkippedUser     Reason = "user"    // allowed_user_ids does not contain the user
)

// Skipped is a credential that the request may not use.
type Skipped struct {
	Credential ids.Credential
	Reason     Reason
}

// Removed is a provider whose shared endpoint may not be used.
type Removed struct {
	Provider string
	// By are the credentials that say so, in their order; at least one.
	By []ids.Credential
}

// NewPlan decides how a request is served with the credentials of one workspace,
// given in any order.
//
// The plan has three parts: for each candidate provider its usable credentials
// that are no fallback; then for each the shared endpoint, unless it is removed;
// then for each its usable fallback credentials. Within a part, providers come in
// the order of the request and credentials by sort_order, then id.
//
// A credential is usable where it is enabled, its allowed_models has the model,
// and its allowed_api_key_hashes and allowed_user_ids admit the caller; a nil list
// restricts nothing, an empty one allows nothing.
//
// An enabled credential removes the shared endpoint of its provider where it is
// is_byok_only, or where it is is_required and its allowed_models has the model.
// Callers whom it does not admit are bound by it too: no platform credit is spent
// against its owner's word. A disabled credential removes nothing.
func NewPlan(credentials []byok.Credential, r Request) Plan {
	credentials = slices.SortedFunc(slices.Values(credentials), inOrder)
	var plan Plan
	var shared, fallback []Step
	for i, provider := range r.Providers {
		if slices.Contains(r.Providers[:i], provider) {
			continue
		}
		var removedBy []ids.Credential
		for _, c := range credentials {
			if c.Provider != provider {
				continue
			}
			if removedFor(c).Has(r.Model) {
				removedBy = append(removedBy, c.ID)
			}
			step := Step{Provider: provider, Credential: c.ID}
			switch reason := skip(c, r); {
			case reason != "":
				plan.Skipped = append(plan.Skipped, Skipped{c.ID, reason})
			case c.Fallback:
				fallback = append(fallback, step)
			default:
				plan.Steps = append(plan.Steps, step)
			}
		}
		if len(removedBy) > 0 {
			plan.Removed = append(plan.Removed, Removed{provider, removedBy})
		} else {
			shared = append(shared, Step{Provider: provider})
		}
	}
	plan.Steps = slices.Concat(plan.Steps, shared, fallback)
	return plan
}

func inOrder(a, b byok.Credential) int {
	return cmp.Or(cmp.Compare(a.SortOrder, b.SortOrder), cmp.Compare(a.ID, b.ID))
}

// skip returns the first reason for which the request may not use the credential,
// or "" where it may.
func skip(c byok.Credential, r Request) Reason {
	switch {
	case c.Disabled:
		return SkippedDisabled
	case !covers(c, r.Model):
		return SkippedModel
	case c.AllowedAPIKeyHashes != nil && !slices.Contains(c.AllowedAPIKeyHashes, r.APIKeyHash):
		return SkippedAPIKey
	case c.AllowedUserIDs != nil && (r.UserID == "" || !slices.Contains(c.AllowedUserIDs, r.UserID)):
		return SkippedUser
	default:
		return ""
	}
}

func covers(c byok.Credential, model string) bool {
	return c.AllowedModels == nil || slices.Contains(c.AllowedModels, model)
}
