//go:build !lambda

package routing

import (
	"slices"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// IsEmpty reports whether the set has no model.
func (m Models) IsEmpty() bool { return !m.AllBut && len(m.Listed) == 0 }

// Reopened returns the models that get the provider's shared endpoint back without this
// credential: this credential removes the endpoint for them, and no other enabled
// credential of the provider does.
//
// An enabled credential that is_byok_only removes it for every model. One that
// is_required removes it for its allowed_models; nil means every model.
func Reopened(credentials []byok.Credential, id ids.Credential) Models {
	i := slices.IndexFunc(credentials, func(c byok.Credential) bool { return c.ID == id })
	if i < 0 {
		return Models{}
	}
	freed := removedFor(credentials[i])
	for j, other := range credentials {
		if i != j && other.Provider == credentials[i].Provider {
			freed = freed.without(removedFor(other))
		}
	}
	return freed
}

// without returns the models of m that other does not have.
func (m Models) without(other Models) Models {
	switch {
	case m.AllBut && other.AllBut:
		return Models{Listed: union(nil, other.Listed, m.Has)}
	case m.AllBut:
		return Models{AllBut: true, Listed: union(m.Listed, other.Listed, m.Has)}
	default:
		return Models{Listed: union(nil, m.Listed, func(model string) bool { return !other.Has(model) })}
	}
}

// union returns a followed by the models of b that pass, each once.
func union(a, b []string, passes func(string) bool) []string {
	all := slices.Clone(a)
	for _, model := range b {
		if passes(model) && !slices.Contains(all, model) {
			all = append(all, model)
		}
	}
	return all
}
