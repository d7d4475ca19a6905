package routing_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
)

var update = flag.Bool("update", false, "write the random cases of infra/router/plans.json again")

const vectorsFile = "../../infra/router/plans.json"

// vectors are the meaning of the flags for routers in other languages.
type vectors struct {
	About    string        `json:"about"`
	MovesOn  []int         `json:"moves_on"`
	Reported map[int]int   `json:"reported_of_shared"`
	Cases    []*vectorCase `json:"cases"`
}

// vectorCase has its fields under their names in the API; one that is left out has its
// default.
type vectorCase struct {
	Name        string              `json:"name"`
	Credentials []vectorCredential  `json:"credentials"`
	Request     vectorRequest       `json:"request"`
	Steps       []string            `json:"steps"`
	Skipped     map[string]string   `json:"skipped,omitempty"`
	Removed     map[string][]string `json:"removed,omitempty"`
}

type vectorCredential struct {
	ID        string    `json:"id"`
	Provider  string    `json:"provider"`
	SortOrder int64     `json:"sort_order"`
	Hashes    *[]string `json:"allowed_api_key_hashes,omitempty"`
	Models    *[]string `json:"allowed_models,omitempty"`
	Users     *[]string `json:"allowed_user_ids,omitempty"`
	Disabled  bool      `json:"disabled,omitempty"`
	BYOKOnly  bool      `json:"is_byok_only,omitempty"`
	Fallback  bool      `json:"is_fallback,omitempty"`
	Required  bool      `json:"is_required,omitempty"`
}

type vectorRequest struct {
	Model     string   `json:"model"`
	Hash      string   `json:"api_key_hash"`
	User      string   `json:"user_id,omitempty"`
	Providers []string `json:"providers"`
}

func list(l *[]string) []string {
	if l == nil {
		return nil
	}
	return *l
}

// plan returns the case as NewPlan decides it.
func (v vectorCase) plan() *vectorCase {
	var credentials []byok.Credential
	for _, c := range v.Credentials {
		credentials = append(credentials, byok.Credential{ID: ids.Credential(c.ID), SortOrder: c.SortOrder, Settings: byok.Settings{
			Provider: c.Provider, AllowedAPIKeyHashes: list(c.Hashes), AllowedModels: list(c.Models), AllowedUserIDs: list(c.Users),
			Disabled: c.Disabled, BYOKOnly: c.BYOKOnly, Fallback: c.Fallback, Required: c.Required,
		}})
	}
	plan := routing.NewPlan(credentials, routing.Request{Model: v.Request.Model, APIKeyHash: v.Request.Hash, UserID: v.Request.User, Providers: v.Request.Providers})
	v.Steps, v.Skipped, v.Removed = append([]string{}, steps(plan)...), map[string]string{}, map[string][]string{}
	for _, s := range plan.Skipped {
		v.Skipped[string(s.Credential)] = string(s.Reason)
	}
	for _, r := range plan.Removed {
		for _, id := range r.By {
			v.Removed[r.Provider] = append(v.Removed[r.Provider], string(id))
		}
	}
	return &v
}

func TestVectors(t *testing.T) {
	text, err := os.ReadFile(vectorsFile)
	testkit.Must(t, err)
	var all vectors
	testkit.Must(t, json.Unmarshal(text, &all))
	if *update {
		all.write(t)
	}
	if len(all.Cases) < 100 {
		t.Errorf("%d cases", len(all.Cases))
	}
	for _, c := range all.Cases {
		want := *c
		if want.Skipped == nil {
			want.Skipped = map[string]string{}
		}
		if want.Removed == nil {
			want.Removed = map[string][]string{}
		}
		if diff := gocmp.Diff(c.plan(), &want); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
		}
	}
	moves := map[int]bool{}
	for _, status := range all.MovesOn {
		moves[status] = true
	}
	for status := 100; status < 600; status++ {
		reported, changed := all.Reported[status]
		if !changed {
			reported = status
		}
		if routing.MovesOn(status) != moves[status] || (routing.Step{}).Reported(status) != reported || (routing.Step{Credential: "A"}).Reported(status) != status {
			t.Errorf("status %d: moves on: %v, reported as %d", status, routing.MovesOn(status), (routing.Step{}).Reported(status))
		}
	}
}

// write keeps the cases with names of their own and makes the random ones again.
func (v *vectors) write(t *testing.T) {
	t.Helper()
	var cases []*vectorCase
	for _, c := range v.Cases {
		if len(c.Name) < 6 || c.Name[:6] != "random" {
			cases = append(cases, c.plan())
		}
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable, on purpose
	providers := []string{"openai", "mistral", "anthropic"}
	pick := func(lists ...[]string) *[]string {
		if n := random.IntN(len(lists) + 2); n < len(lists) {
			return &lists[n]
		}
		return nil
	}
	for n := len(cases); n < 120; n++ {
		c := &vectorCase{Name: fmt.Sprint("random ", n), Request: vectorRequest{Model: "m", Hash: "h", User: []string{"u", ""}[random.IntN(2)]}}
		for range 1 + random.IntN(3) {
			c.Request.Providers = append(c.Request.Providers, providers[random.IntN(3)])
		}
		for i := range 1 + random.IntN(4) {
			c.Credentials = append(c.Credentials, vectorCredential{
				ID: string(rune('A' + i)), Provider: providers[random.IntN(3)], SortOrder: random.Int64N(3),
				Hashes: pick([]string{"h", "g"}, []string{"g"}), Models: pick([]string{"m"}, []string{}, []string{"n"}), Users: pick([]string{"u"}, []string{"v"}),
				Disabled: random.IntN(6) == 0, BYOKOnly: random.IntN(6) == 0, Fallback: random.IntN(4) == 0, Required: random.IntN(5) == 0,
			})
		}
		cases = append(cases, c.plan())
	}
	v.Cases, v.MovesOn, v.Reported = cases, nil, map[int]int{http.StatusUnauthorized: http.StatusBadGateway, http.StatusForbidden: http.StatusBadGateway}
	for status := 100; status < 600; status++ {
		if routing.MovesOn(status) {
			v.MovesOn = append(v.MovesOn, status)
		}
	}
	// One line a case.
	var text bytes.Buffer
	line := func(prefix string, value any, end string) {
		t.Helper()
		encoded, err := json.Marshal(value)
		testkit.Must(t, err)
		fmt.Fprintf(&text, "%s%s%s\n", prefix, encoded, end)
	}
	text.WriteString("{\n")
	line(`"about": `, v.About, ",")
	line(`"moves_on": `, v.MovesOn, ",")
	line(`"reported_of_shared": `, v.Reported, ",")
	text.WriteString("\"cases\": [\n")
	for i, c := range v.Cases {
		line("  ", c, map[bool]string{true: "", false: ","}[i == len(v.Cases)-1])
	}
	text.WriteString("]\n}\n")
	testkit.Must(t, os.WriteFile(vectorsFile, text.Bytes(), 0o644)) //nolint:gosec // it is for everybody
}
