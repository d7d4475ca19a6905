package routing_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
)

const provider = "openai"

func request(model string) routing.Request {
	return routing.Request{Model: model, APIKeyHash: "h", UserID: "u", Providers: []string{provider}}
}

// steps writes a plan's steps as "A, openai shared, B".
func steps(p routing.Plan) []string {
	var all []string
	for _, s := range p.Steps {
		if s.IsShared() {
			all = append(all, s.Provider+" shared")
		} else {
			all = append(all, string(s.Credential))
		}
	}
	return all
}

// vectors are test cases of the flags for routers in other languages.
type vectors struct {
	MovesOn  []int       `json:"moves_on"`
	Reported map[int]int `json:"reported_of_shared"`
	Cases    []struct {
		Name        string
		Credentials []vectorCredential
		Request     json.RawMessage
		decision
	}
}

type vectorRequest struct {
	Model     string
	Hash      ids.KeyHash `json:"api_key_hash"`
	UserID    string      `json:"user_id"`
	Providers []string
}

// decision is a plan in the form of the vectors.
type decision struct {
	Steps   []string
	Skipped map[string]string
	Removed map[string][]string
}

type vectorCredential struct {
	ID        ids.Credential
	SortOrder int64 `json:"sort_order"`
	byok.Settings
}

func TestVectors(t *testing.T) {
	text, err := os.ReadFile("../../infra/router/plans.json")
	kit.Must(t, err)
	var all vectors
	kit.Must(t, json.Unmarshal(text, &all))
	if len(all.Cases) < 34 {
		t.Errorf("%d cases", len(all.Cases))
	}
	for _, c := range all.Cases {
		var credentials []byok.Credential
		for _, v := range c.Credentials {
			if v.Provider == "" {
				v.Provider = provider
			}
			credentials = append(credentials, byok.Credential{ID: v.ID, SortOrder: v.SortOrder, Settings: v.Settings})
		}
		r := vectorRequest{Model: "m", Hash: "h", Providers: []string{provider}}
		if c.Request != nil {
			kit.Must(t, json.Unmarshal(c.Request, &r))
		}
		plan := routing.NewPlan(credentials, routing.Request{Model: r.Model, APIKeyHash: r.Hash, UserID: r.UserID, Providers: r.Providers})
		got := decision{steps(plan), map[string]string{}, map[string][]string{}}
		for _, s := range plan.Skipped {
			got.Skipped[string(s.Credential)] = string(s.Reason)
		}
		for _, r := range plan.Removed {
			for _, id := range r.By {
				got.Removed[r.Provider] = append(got.Removed[r.Provider], string(id))
			}
		}
		if diff := cmp.Diff(c.decision, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Name, diff)
		}
	}
	for status := 100; status < 600; status++ {
		reported, changed := all.Reported[status]
		if !changed {
			reported = status
		}
		if routing.MovesOn(status) != slices.Contains(all.MovesOn, status) ||
			(routing.Step{}).Reported(status) != reported || (routing.Step{Credential: "A"}).Reported(status) != status {
			t.Errorf("status %d: moves on: %v, reported as %d", status, routing.MovesOn(status), (routing.Step{}).Reported(status))
		}
	}
}

// removals are all settings that can remove a shared endpoint.
func removals(id string) []byok.Credential {
	with := func(models []string, disabled, byokOnly, required bool) byok.Credential {
		return byok.Credential{ID: ids.Credential(id), Settings: byok.Settings{
			Provider: provider, AllowedModels: models, Disabled: disabled, BYOKOnly: byokOnly, Required: required,
		}}
	}
	all := []byok.Credential{with(nil, true, true, true)}
	for bits := range 4 {
		for _, models := range [][]string{nil, {}, {"m"}, {"m", "n", "m"}} {
			all = append(all, with(models, false, bits&1 != 0, bits&2 != 0))
		}
	}
	return all
}

// For all sets of three credentials, compare the plans with and without the first one.
// Their shared endpoint differs for the reopened models, and for no others.
func TestReopened(t *testing.T) {
	isShared := func(model string, credentials ...byok.Credential) bool {
		return slices.Contains(steps(routing.NewPlan(credentials, request(model))), provider+" shared")
	}
	for _, a := range removals("A") {
		for _, b := range removals("B") {
			for _, c := range removals("C") {
				reopened := routing.Reopened([]byok.Credential{b, a, c}, "A")
				for _, model := range []string{"m", "n", "o"} {
					want := isShared(model, b, c) && !isShared(model, b, a, c)
					if reopened.Has(model) != want || want && reopened.IsEmpty() {
						t.Fatalf("%s is reopened: %v, want %v, of %+v, %+v, %+v", model, !want, want, b, a, c)
					}
				}
			}
		}
	}
	closed := func(id ids.Credential, provider string) byok.Credential {
		return byok.Credential{ID: id, Settings: byok.Settings{Provider: provider, BYOKOnly: true}}
	}
	both := []byok.Credential{closed("A", provider), closed("B", "anthropic")}
	if got := routing.Reopened(both, "A"); !got.AllBut || len(got.Listed) > 0 {
		t.Errorf("beside another provider: %+v", got)
	}
	if got := routing.Reopened(both, "absent"); !got.IsEmpty() {
		t.Errorf("of no credential: %+v", got)
	}
}
