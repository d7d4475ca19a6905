package routing_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
)

const provider = "openai"

// credential makes an enabled credential of one provider that restricts nothing.
func credential(id string, sort int64, settings ...func(*byok.Settings)) byok.Credential {
	c := byok.Credential{ID: ids.Credential(id), SortOrder: sort, Settings: byok.Settings{Provider: provider}}
	for _, set := range settings {
		set(&c.Settings)
	}
	return c
}

func byokOnly(s *byok.Settings) { s.BYOKOnly = true }
func of(p string) func(*byok.Settings) {
	return func(s *byok.Settings) { s.Provider = p }
}

func request(model string) routing.Request {
	return routing.Request{Model: model, APIKeyHash: "h", UserID: "u", Providers: []string{provider}}
}

// steps writes a plan's steps as "A, openai shared, B".
func steps(p routing.Plan) []string {
	all := []string{}
	for _, s := range p.Steps {
		if s.IsShared() {
			all = append(all, s.Provider+" shared")
		} else {
			all = append(all, string(s.Credential))
		}
	}
	return all
}

// variants are all settings of a credential that matter to a request for model m, under hash h
// and by user u.
func variants(id string, sort int64) []byok.Credential {
	var all []byok.Credential
	for bits := range 16 {
		for _, m := range [][]string{nil, {}, {"m"}, {"n"}} {
			for _, h := range [][]string{nil, {"h"}, {"other"}} {
				for _, u := range [][]string{nil, {"u"}, {"other"}} {
					all = append(all, byok.Credential{ID: ids.Credential(id), SortOrder: sort, Settings: byok.Settings{
						Provider: provider, AllowedModels: m, AllowedAPIKeyHashes: h, AllowedUserIDs: u,
						Disabled: bits&1 != 0, BYOKOnly: bits&2 != 0, Fallback: bits&4 != 0, Required: bits&8 != 0,
					}})
				}
			}
		}
	}
	return all
}

// expected says the contract a second way: it ranks each step by its part of the plan,
// and sorts the ranks.
func expected(credentials []byok.Credential, providers []string) []string {
	ranks := map[string]int{}
	for i, p := range slices.Backward(providers) {
		ranks[p+" shared"] = 1000 + 100*i
	}
	for _, c := range credentials {
		covers := c.AllowedModels == nil || len(c.AllowedModels) == 1 && c.AllowedModels[0] == "m"
		admitted := (c.AllowedAPIKeyHashes == nil || c.AllowedAPIKeyHashes[0] == "h") && (c.AllowedUserIDs == nil || c.AllowedUserIDs[0] == "u")
		at := slices.Index(providers, c.Provider)
		if c.Disabled || at < 0 {
			continue
		}
		if c.BYOKOnly || c.Required && covers {
			delete(ranks, c.Provider+" shared")
		}
		if covers && admitted {
			rank := 100*at + int(c.SortOrder)
			if c.Fallback {
				rank += 2000
			}
			ranks[string(c.ID)] = rank
		}
	}
	return slices.SortedFunc(maps.Keys(ranks), func(a, b string) int {
		return cmp.Or(ranks[a]-ranks[b], strings.Compare(a, b))
	})
}

// All setups of a credential, all pairs of them, and random setups of several credentials
// and providers. Some providers are repeated.
func TestPlansMatchASecondFormulation(t *testing.T) {
	first, second := variants("A", 0), variants("B", 1)
	for _, a := range first {
		for _, pair := range append([][]byok.Credential{{a}}, pairs(a, second)...) {
			if got, want := steps(routing.NewPlan(pair, request("m"))), expected(pair, []string{provider}); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v for %+v", got, want, pair)
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable, on purpose
	providers := []string{"openai", "mistral", "anthropic"}
	for range 20_000 {
		r := request("m")
		r.Providers = nil
		for range 1 + random.IntN(4) {
			r.Providers = append(r.Providers, providers[random.IntN(len(providers))])
		}
		var credentials []byok.Credential
		var candidates []string // in a step, or left out for a reason
		for _, i := range random.Perm(random.IntN(6)) {
			c := first[random.IntN(len(first))]
			c.ID, c.SortOrder, c.Provider = ids.Credential(fmt.Sprint(i)), int64(random.IntN(3)), providers[random.IntN(len(providers))]
			credentials = append(credentials, c)
			if slices.Contains(r.Providers, c.Provider) {
				candidates = append(candidates, string(c.ID))
			}
		}
		plan := routing.NewPlan(credentials, r)
		got, want := steps(plan), expected(credentials, r.Providers)
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v for %+v of %+v", got, want, r, credentials)
		}
		for _, p := range slices.Compact(slices.Sorted(slices.Values(r.Providers))) {
			candidates = append(candidates, p+" shared")
		}
		for _, s := range plan.Skipped {
			got = append(got, string(s.Credential))
		}
		for _, x := range plan.Removed {
			got = append(got, x.Provider+" shared")
		}
		slices.Sort(got)
		slices.Sort(candidates)
		if !slices.Equal(got, candidates) {
			t.Fatalf("%+v contains %v, want each of %v once", plan, got, candidates)
		}
	}
}

func pairs(a byok.Credential, others []byok.Credential) [][]byok.Credential {
	all := make([][]byok.Credential, len(others))
	for i, b := range others {
		all[i] = []byok.Credential{b, a}
	}
	return all
}

// removals are all settings that can remove a shared endpoint.
func removals(id string) []byok.Credential {
	var all []byok.Credential
	for bits := range 8 {
		for _, m := range [][]string{nil, {}, {"m"}, {"m", "n", "m"}} {
			all = append(all, byok.Credential{ID: ids.Credential(id), Settings: byok.Settings{
				Provider: provider, AllowedModels: m, Disabled: bits&1 != 0, BYOKOnly: bits&2 != 0, Required: bits&4 != 0,
			}})
		}
	}
	return all
}

// In all setups of three credentials, the plans with and without the first differ in the
// shared endpoint for the reopened models, and for no others.
func TestReopened(t *testing.T) {
	for _, a := range removals("A") {
		for _, b := range removals("B") {
			for _, c := range removals("C") {
				with, without := []byok.Credential{b, a, c}, []byok.Credential{b, c}
				reopened := routing.Reopened(with, "A")
				for _, model := range []string{"m", "n", "o"} {
					want := len(shared(routing.NewPlan(without, request(model)))) > len(shared(routing.NewPlan(with, request(model))))
					if reopened.Has(model) != want || want && reopened.IsEmpty() {
						t.Fatalf("%+v has %s: %v, want %v, of %+v", reopened, model, !want, want, with)
					}
				}
			}
		}
	}
	other := credential("B", 0, of("anthropic"), byokOnly)
	if got := routing.Reopened([]byok.Credential{credential("A", 0, byokOnly), other}, "A"); !got.AllBut || len(got.Listed) > 0 {
		t.Errorf("beside another provider: %+v", got)
	}
	if got := routing.Reopened([]byok.Credential{other}, "absent"); !got.IsEmpty() {
		t.Errorf("of no credential: %+v", got)
	}
}

func shared(p routing.Plan) []string {
	var all []string
	for _, s := range p.Steps {
		if s.IsShared() {
			all = append(all, s.Provider)
		}
	}
	return all
}
