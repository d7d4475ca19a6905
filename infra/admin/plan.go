package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
	"signalbox.dev/shared/spelling"
)

type credentialPlan struct {
	scope
	Model      string               `required:"" placeholder:"SLUG" help:"The model that is asked for."`
	APIKeyHash arguments.HashPrefix `name:"api-key-hash" placeholder:"HASH" help:"The hash of the calling API key, or a prefix that no other key of the account has. The plan is for the key's own workspace. If omitted, no list of allowed keys has it."`
	User       string               `placeholder:"ID" help:"The calling user, if known."`
	Router     string               `type:"existingfile" placeholder:"FILE" help:"The router's configuration, such as router.yaml. Models in allow-lists that it does not route are named: they cover no request."`
	Providers  []arguments.Provider `name:"provider" required:"" placeholder:"SLUG" help:"The providers that the router may choose, in its order: repeat the flag, or separate them with commas."`
}

// planView is a plan for scripts.
type planView struct {
	Steps   []stepView    `json:"steps"`
	Skipped []skippedView `json:"skipped"`
	Removed []removedView `json:"removed"`
}

type stepView struct {
	Kind     string         `json:"kind"` // credential or shared
	ID       ids.Credential `json:"id,omitempty"`
	Provider string         `json:"provider"`
}

type skippedView struct {
	ID     ids.Credential `json:"id"`
	Reason routing.Reason `json:"reason"`
}

type removedView struct {
	Provider string           `json:"provider"`
	By       []ids.Credential `json:"by"`
}

func viewPlan(p routing.Plan) planView {
	return planView{
		Steps: each(p.Steps, func(step routing.Step) stepView {
			kind := "credential"
			if step.IsShared() {
				kind = "shared"
			}
			return stepView{kind, step.Credential, step.Provider}
		}),
		Skipped: each(p.Skipped, func(s routing.Skipped) skippedView { return skippedView{s.Credential, s.Reason} }),
		Removed: each(p.Removed, func(r routing.Removed) removedView { return removedView(r) }),
	}
}

// planRow is a line of a plan for people: a step, or the reason why there is none.
type planRow struct {
	step     string `list:"step"`
	provider string `list:"provider"`
	uses     string `list:"uses,short"`
	label    string `list:"label"`
	why      string `list:"why not,16"`
}

func (c credentialPlan) Run(ctx context.Context, s *session) error {
	planned := c.Workspace
	if c.APIKeyHash != "" {
		key, err := c.caller(ctx, s)
		if err != nil {
			return err
		}
		c.APIKeyHash, planned = arguments.HashPrefix(key.Hash), key.Workspace
	}
	workspace, err := s.Registry.FindWorkspace(ctx, c.Account, planned)
	if err != nil {
		return err
	}
	if c.Workspace != "" && c.Workspace != workspace.ID {
		return acts.Refusal(fmt.Sprintf("a router plans requests with this key for workspace %s: omit --workspace", workspace.ID))
	}
	if !workspace.DeletedAt.IsZero() {
		return fmt.Errorf("%w: a router refuses every request for it", auth.ErrWorkspaceDeleted)
	}
	stored, err := s.Credentials.ReadSettings(ctx, c.Account, workspace.ID)
	if err != nil {
		return err
	}
	if err := c.warnOfModels(s, stored); err != nil {
		return err
	}
	plan := routing.NewPlan(stored, routing.Request{
		Model: c.Model, APIKeyHash: ids.KeyHash(c.APIKeyHash), UserID: c.User, Providers: each(c.Providers, func(p arguments.Provider) string { return string(p) }),
	})
	if s.out.JSON {
		return s.out.Encode(viewPlan(plan))
	}
	return output.List(s.out, rowsOf(plan, stored), "step", "provider", "uses", "label", "why not")
}

// caller finds the calling key. It returns a Refusal if a router refuses every request with it.
func (c credentialPlan) caller(ctx context.Context, s *session) (auth.SurveyedKey, error) {
	key, err := oneKey{keySearch{c.Account}, c.APIKeyHash}.find(ctx, s)
	if err != nil {
		return auth.SurveyedKey{}, err
	}
	state, answer := stateOf(key.Key, s.now()), ""
	is := string(state)
	switch state {
	case damaged:
		answer = "401 unknown_key"
	case disabled, suspended:
		answer = "401 disabled"
	case expired:
		answer = "401 expired"
	case active:
		if key.Kind == auth.Management {
			is, answer = "a management key", "403 management_key"
		}
	}
	if answer != "" {
		return auth.SurveyedKey{}, acts.Refusal(fmt.Sprintf("key %s is %s: a router answers its requests with %s", key.Hash.Short(), is, answer))
	}
	return key, nil
}

// warnOfModels names the models in allow-lists that the router's configuration lacks.
func (c credentialPlan) warnOfModels(s *session, stored []byok.Credential) error {
	if c.Router == "" {
		return nil
	}
	text, err := os.ReadFile(c.Router)
	if err != nil {
		return err
	}
	var router struct {
		Models map[string]any `json:"models"`
	}
	if err := yaml.Unmarshal(text, &router); err != nil || len(router.Models) == 0 {
		return acts.UsageError("--router: the file has no models, as infra/router/router.yaml has them")
	}
	routed := slices.Sorted(maps.Keys(router.Models))
	for _, v := range stored {
		for _, model := range v.AllowedModels {
			if slices.Contains(routed, model) {
				continue
			}
			advice := ""
			if near := spelling.Nearest(model, routed); near != "" {
				advice = "; did you mean " + near + "?"
			}
			s.Warn(fmt.Sprintf("credential %.8s allows %q, which the router does not route, so this covers no request%s", v.ID, model, advice))
		}
	}
	return nil
}

func rowsOf(plan routing.Plan, stored []byok.Credential) []planRow {
	find := func(id ids.Credential) byok.Credential {
		return stored[slices.IndexFunc(stored, func(c byok.Credential) bool { return c.ID == id })]
	}
	var rows []planRow
	for i, step := range plan.Steps {
		row := planRow{step: strconv.Itoa(i + 1), provider: step.Provider, uses: "shared endpoint"}
		if !step.IsShared() {
			row.uses, row.label = "credential "+string(step.Credential), marked(find(step.Credential))
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		rows = append(rows, planRow{uses: "nothing", why: "no step is left: a router refuses the request"})
	}
	for _, skipped := range plan.Skipped {
		c := find(skipped.Credential)
		rows = append(rows, planRow{
			provider: c.Provider, uses: "credential " + string(c.ID), label: marked(c), why: cmp.Or(reasons[skipped.Reason], string(skipped.Reason)),
		})
	}
	for _, removed := range plan.Removed {
		var by []string
		for _, id := range removed.By {
			flag := "is_required"
			if find(id).BYOKOnly {
				flag = "is_byok_only"
			}
			by = append(by, fmt.Sprintf("%.8s (%s)", id, flag))
		}
		rows = append(rows, planRow{provider: removed.Provider, uses: "shared endpoint", why: "removed by " + strings.Join(by, ", ")})
	}
	return rows
}

var reasons = map[routing.Reason]string{
	routing.SkippedDisabled: "disabled",
	routing.SkippedModel:    "model not allowed",
	routing.SkippedAPIKey:   "API key not allowed",
	routing.SkippedUser:     "user not allowed",
}
