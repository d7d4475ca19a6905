package main

import (
	"cmp"
	"slices"
)

// credential is one as the API shows it, and its key.
type credential struct {
	ID        string   `json:"id"`
	Provider  string   `json:"provider"`
	SortOrder int64    `json:"sort_order"`
	Models    []string `json:"allowed_models"`
	Hashes    []string `json:"allowed_api_key_hashes"`
	Users     []string `json:"allowed_user_ids"`
	Disabled  bool     `json:"disabled"`
	Only      bool     `json:"is_byok_only"`
	Fallback  bool     `json:"is_fallback"`
	Required  bool     `json:"is_required"`
	key       string
}

// asked is a request as the oracle sees it.
type asked struct {
	Model     string   `json:"model"`
	Hash      string   `json:"api_key_hash"`
	User      string   `json:"user_id"`
	Providers []string `json:"providers"`
}

// step is a credential's id at a provider, or "" for the shared endpoint.
type step struct{ provider, credential string }

// plan is a second implementation of routing.NewPlan, from the contract's text.
func plan(all []credential, r asked) (steps []step) {
	within := func(value string, allowed []string) bool {
		return allowed == nil || value != "" && slices.Contains(allowed, value)
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b credential) int {
		return cmp.Or(cmp.Compare(a.SortOrder, b.SortOrder), cmp.Compare(a.ID, b.ID))
	})
	closed := map[string]bool{}
	for _, c := range all {
		if !c.Disabled && (c.Only || c.Required && within(r.Model, c.Models)) {
			closed[c.Provider] = true
		}
	}
	var providers []string
	for _, p := range r.Providers {
		if !slices.Contains(providers, p) {
			providers = append(providers, p)
		}
	}
	for _, part := range []string{"own", "shared", "fallback"} {
		for _, p := range providers {
			if part == "shared" {
				if !closed[p] {
					steps = append(steps, step{p, ""})
				}
				continue
			}
			for _, c := range all {
				if c.Provider == p && !c.Disabled && c.Fallback == (part == "fallback") && within(r.Model, c.Models) && within(r.Hash, c.Hashes) && within(r.User, c.Users) {
					steps = append(steps, step{p, c.ID})
				}
			}
		}
	}
	return steps
}

// vectors are plans.json.
type vectors struct {
	MovesOn  []int       `json:"moves_on"`
	Reported map[int]int `json:"reported_of_shared"`
	Cases    []struct {
		Name        string
		Credentials []credential
		Request     asked
		Steps       []string
	}
}

func (v vectors) judgeTheOracle() {
	for _, c := range v.Cases {
		var steps []string
		for _, s := range plan(c.Credentials, c.Request) {
			steps = append(steps, cmp.Or(s.credential, s.provider+" shared"))
		}
		check(slices.Equal(steps, c.Steps), c.Name, steps, c.Steps)
	}
}

// expected is the status that the caller gets, and what the providers receive.
func (v vectors) expected(plan []received, answers []string, statusOf func(string) int) (int, []received) {
	for i, r := range plan {
		status := http200
		if i < len(answers) {
			status = statusOf(answers[i])
		}
		if isLast := i == len(plan)-1; isLast || status != 0 && !slices.Contains(v.MovesOn, status) {
			if status == 0 {
				return http503, plan[:i+1]
			}
			if reported, ok := v.Reported[status]; ok && isPlatform(r) {
				status = reported
			}
			return status, plan[:i+1]
		}
	}
	return http403, nil // no step
}
