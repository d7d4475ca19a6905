package routing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func fallback(s *byok.Settings) { s.Fallback = true }
func required(s *byok.Settings) { s.Required = true }
func byokOnly(s *byok.Settings) { s.BYOKOnly = true }
func disabled(s *byok.Settings) { s.Disabled = true }
func of(p string) func(*byok.Settings) {
	return func(s *byok.Settings) { s.Provider = p }
}
func models(m ...string) func(*byok.Settings) {
	return func(s *byok.Settings) { s.AllowedModels = append([]string{}, m...) }
}
func hashes(h ...string) func(*byok.Settings) {
	return func(s *byok.Settings) { s.AllowedAPIKeyHashes = append([]string{}, h...) }
}
func users(u ...string) func(*byok.Settings) {
	return func(s *byok.Settings) { s.AllowedUserIDs = append([]string{}, u...) }
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

// What the second formulation does not vary.
func TestPlans(t *testing.T) {
	type list = []byok.Credential
	a := func(settings ...func(*byok.Settings)) byok.Credential { return credential("A", 0, settings...) }
	anonymous := request("m")
	anonymous.UserID = ""
	for name, c := range map[string]struct {
		credentials list
		request     routing.Request
		want        []string
	}{
		"no credential":           {nil, request("m"), []string{"openai shared"}},
		"one place, by id":        {list{credential("B", 0), a()}, request("m"), []string{"A", "B", "openai shared"}},
		"a user who is not known": {list{a(users("u", ""))}, anonymous, []string{"openai shared"}},
		"models byte for byte":    {list{a(models("M", "m "))}, request("m"), []string{"openai shared"}},
		"another provider":        {list{a(of("mistral"), byokOnly)}, request("m"), []string{"openai shared"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(steps(routing.NewPlan(c.credentials, c.request)), c.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProvidersKeepTheRequestsOrder(t *testing.T) {
	r := request("m")
	r.Providers = []string{"mistral", "openai", "mistral"}
	plan := routing.NewPlan([]byok.Credential{
		credential("A", 0), credential("B", 1, fallback), credential("C", 0, of("mistral")), credential("D", 1, of("mistral"), fallback),
	}, r)
	if diff := cmp.Diff(steps(plan), []string{"C", "A", "mistral shared", "openai shared", "D", "B"}); diff != "" {
		t.Error(diff)
	}
}

func TestPlansGiveReasons(t *testing.T) {
	r := routing.Request{Model: "n", APIKeyHash: "other", Providers: []string{provider}}
	plan := routing.NewPlan([]byok.Credential{
		credential("A", 0, disabled, models("m")), credential("B", 1, models("m"), hashes("h")),
		credential("C", 2, hashes("h"), users("u")), credential("D", 3, users("u"), required),
		credential("E", 4, byokOnly),
	}, r)
	want := routing.Plan{
		Steps: []routing.Step{{Provider: provider, Credential: "E"}},
		Skipped: []routing.Skipped{
			{Credential: "A", Reason: routing.SkippedDisabled}, {Credential: "B", Reason: routing.SkippedModel},
			{Credential: "C", Reason: routing.SkippedAPIKey}, {Credential: "D", Reason: routing.SkippedUser},
		},
		Removed: []routing.Removed{{Provider: provider, By: []ids.Credential{"D", "E"}}},
	}
	if diff := cmp.Diff(plan, want); diff != "" {
		t.Error(diff)
	}
}

// variants are all settings of one credential that a request for model m under
// hash h by user u can tell apart.
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

// expected is the contract said a second way: each step is ranked by its part of
// the plan, and ranks are sorted.
func expected(credentials []byok.Credential) []string {
	ranks := map[string]int{"openai shared": 1000}
	for _, c := range credentials {
		covers := c.AllowedModels == nil || len(c.AllowedModels) == 1 && c.AllowedModels[0] == "m"
		admitted := (c.AllowedAPIKeyHashes == nil || c.AllowedAPIKeyHashes[0] == "h") && (c.AllowedUserIDs == nil || c.AllowedUserIDs[0] == "u")
		if c.Disabled {
			continue
		}
		if c.BYOKOnly || c.Required && covers {
			delete(ranks, "openai shared")
		}
		if covers && admitted {
			rank := int(c.SortOrder)
			if c.Fallback {
				rank += 2000
			}
			ranks[string(c.ID)] = rank
		}
	}
	all := []string{}
	for step := range ranks {
		all = append(all, step)
	}
	slices.SortFunc(all, func(a, b string) int { return ranks[a] - ranks[b] })
	return all
}

// Every setup of one credential, and every pair of them.
func TestPlansMatchASecondFormulation(t *testing.T) {
	second := variants("B", 1)
	for _, a := range variants("A", 0) {
		for _, pair := range append([][]byok.Credential{{a}}, pairs(a, second)...) {
			if got, want := steps(routing.NewPlan(pair, request("m"))), expected(pair); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v for %+v", got, want, pair)
			}
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

// removals are settings that differ in what they remove.
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

// Of all setups of three credentials: the plans with and without the first differ in
// the shared endpoint for the reopened models, and for no others.
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

func TestPlanProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable, on purpose
	settings := variants("", 0)
	providers := []string{"openai", "mistral", "anthropic"}
	for range 20_000 {
		var credentials []byok.Credential
		for i := range random.IntN(6) {
			c := settings[random.IntN(len(settings))]
			c.ID, c.SortOrder, c.Provider = ids.Credential(fmt.Sprint(i)), int64(random.IntN(3)), providers[random.IntN(len(providers))]
			credentials = append(credentials, c)
		}
		r := request("m")
		r.Providers = providers[:1+random.IntN(len(providers))]
		plan := routing.NewPlan(credentials, r)

		shuffled := slices.Clone(credentials)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(routing.NewPlan(shuffled, r), plan); diff != "" {
			t.Fatal("the order of the credentials matters: " + diff)
		}
		sharedSteps := shared(plan)
		for _, p := range sharedSteps {
			if n := len(slices.DeleteFunc(slices.Clone(sharedSteps), func(s string) bool { return s != p })); n > 1 {
				t.Fatalf("%d shared steps of %s", n, p)
			}
			if slices.ContainsFunc(plan.Removed, func(x routing.Removed) bool { return x.Provider == p }) {
				t.Fatalf("the shared endpoint of %s is removed and used", p)
			}
		}
		for _, s := range plan.Skipped {
			if slices.ContainsFunc(plan.Steps, func(x routing.Step) bool { return x.Credential == s.Credential }) {
				t.Fatalf("%s is skipped and used", s.Credential)
			}
		}
		for i, set := range []func(*byok.Settings){byokOnly, required, fallback} {
			for k := range credentials {
				flagged := slices.Clone(credentials)
				set(&flagged[k].Settings)
				for _, p := range shared(routing.NewPlan(flagged, r)) {
					if !slices.Contains(sharedSteps, p) {
						t.Fatalf("flag %d of %s adds a shared step of %s", i, credentials[k].ID, p)
					}
				}
			}
		}
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
