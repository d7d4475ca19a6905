// Package routing gives a router the meaning of stored credentials' flags and
// allow-lists: the credentials that a request may use, their order, and whether it may
// use a provider's shared endpoint. NewPlan is that meaning as a pure function and the
// reference for other implementations; infra/router/plans.json contains test cases.
// Reader finds who calls, applies NewPlan to the stored rows, and opens the keys of the
// plan.
//
// It is for the platform's router, which runs under its own role. No Lambda function
// links this package, because no function may read a credential.
package routing

import (
	"cmp"
	"net/http"
	"slices"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// Request is one request for a model, as the router knows it.
type Request struct {
	// Model is the model's slug, compared byte for byte with allowed_models.
	Model string
	// APIKeyHash is the lower-case hexadecimal SHA-256 of the calling API key.
	APIKeyHash ids.KeyHash
	// UserID is the calling user. It comes from the router's own authentication, never
	// from a header of the client. It is empty if unknown; an empty UserID matches no
	// allowed_user_ids.
	UserID string
	// Providers are the candidate providers in the router's order. A repeated provider
	// counts once, at its first place.
	Providers []string
}

// Plan is how a request may be served: its steps are tried in order. MovesOn says
// when the next one is tried. A plan without steps means that the request is refused.
type Plan struct {
	Steps []Step
	// Skipped are the credentials of candidate providers that are in no step.
	Skipped []Skipped
	// Removed are the candidate providers for which the shared endpoint may not be used.
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

// The reasons in the order of the checks; the first that holds is reported.
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

// Removed is a provider with a shared endpoint that may not be used.
type Removed struct {
	Provider string
	// By are the credentials that remove it, at least one, in their order.
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
// A credential is usable if it is enabled, its allowed_models has the model, and its
// allowed_api_key_hashes and allowed_user_ids admit the caller. A nil list restricts
// nothing; an empty one allows nothing.
//
// An enabled credential removes the shared endpoint of its provider if it is
// is_byok_only, or if it is is_required and its allowed_models has the model. It does so
// for all callers, admitted or not: the owner has forbidden to spend platform credit. A
// disabled credential removes nothing.
func NewPlan(credentials []byok.Credential, r Request) Plan {
	credentials = slices.SortedFunc(slices.Values(credentials), func(a, b byok.Credential) int {
		return cmp.Or(cmp.Compare(a.SortOrder, b.SortOrder), cmp.Compare(a.ID, b.ID))
	})
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

// skip returns the first reason against using the credential for the request, or "" if
// there is none.
func skip(c byok.Credential, r Request) Reason {
	switch {
	case c.Disabled:
		return SkippedDisabled
	case c.AllowedModels != nil && !slices.Contains(c.AllowedModels, r.Model):
		return SkippedModel
	case c.AllowedAPIKeyHashes != nil && !slices.Contains(c.AllowedAPIKeyHashes, r.APIKeyHash):
		return SkippedAPIKey
	case c.AllowedUserIDs != nil && (r.UserID == "" || !slices.Contains(c.AllowedUserIDs, r.UserID)):
		return SkippedUser
	default:
		return ""
	}
}

// Models is a set of models: those listed, or all but those listed.
type Models struct {
	AllBut bool
	Listed []string
}

// Has reports whether the model is in the set.
func (m Models) Has(model string) bool { return slices.Contains(m.Listed, model) != m.AllBut }

// removedFor returns the models for which the credential removes the shared endpoint.
func removedFor(c byok.Credential) Models {
	switch {
	case c.Disabled || !c.BYOKOnly && !c.Required:
		return Models{}
	case c.BYOKOnly || c.AllowedModels == nil:
		return Models{AllBut: true}
	default:
		return Models{Listed: c.AllowedModels}
	}
}

// IsEmpty reports whether the set has no model.
func (m Models) IsEmpty() bool { return !m.AllBut && len(m.Listed) == 0 }

// Reopened returns the models that get the provider's shared endpoint back without this
// credential: this credential removes the endpoint for them, and no other one of the provider.
func Reopened(credentials []byok.Credential, id ids.Credential) (freed Models) {
	i := slices.IndexFunc(credentials, func(c byok.Credential) bool { return c.ID == id })
	if i < 0 {
		return Models{}
	}
	var listed []string
	for _, c := range credentials {
		listed = append(listed, c.AllowedModels...)
	}
	isFreed := func(model string) bool {
		return !slices.ContainsFunc(credentials, func(c byok.Credential) bool {
			return c.Provider == credentials[i].Provider && removedFor(c).Has(model) != (c.ID == id)
		})
	}
	freed.AllBut = isFreed("") // as each model that no list has
	for _, model := range listed {
		if isFreed(model) != freed.AllBut && !slices.Contains(freed.Listed, model) {
			freed.Listed = append(freed.Listed, model)
		}
	}
	return freed
}

// Next returns the step of an attempt: the first one that is not tried. Call it on a plan of
// the rows as they are now. The tried steps are those before this attempt in the request's
// first plan.
func (p Plan) Next(isTried func(Step) bool) (next Step, ok bool) {
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return !isTried(s) })
	if i < 0 {
		return Step{}, false
	}
	return p.Steps[i], true
}

// MovesOn reports whether a provider's response with this status moves a request on to
// the next step. So does a connection that cannot be made, or that breaks before the first
// byte. Nothing else does: no other status, no event after the first byte, and no refusal
// or outage of the process that plans requests and opens keys. A time-out after the request
// was sent does not, because the provider may have done the work and bills it. A router may
// add statuses of a provider, such as Gemini's 400 for a dead key.
func MovesOn(status int) bool {
	return refusesKey(status) || status >= http.StatusInternalServerError ||
		status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooManyRequests
}

// Reported is the status that the caller gets if a provider's response to the last step has
// this status: the caller can do nothing about a refusal of the platform's own key. Report
// statuses that a router has added to MovesOn for a refused key in the same way.
func (s Step) Reported(status int) int {
	if s.IsShared() && refusesKey(status) {
		return http.StatusBadGateway
	}
	return status
}

func refusesKey(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusPaymentRequired || status == http.StatusForbidden
}
