package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
)

type credentialPlan struct {
	scope
	Model      string               `required:"" placeholder:"SLUG" help:"The model that is asked for."`
	APIKeyHash arguments.HashPrefix `name:"api-key-hash" placeholder:"HASH" help:"The hash of the calling API key, or a prefix that no other key of the account has. The plan is for the key's own workspace. If omitted, no list of allowed keys has it."`
	User       string               `placeholder:"ID" help:"The calling user, if known."`
	Providers  []arguments.Provider `name:"provider" required:"" placeholder:"SLUG" help:"The providers that the router may choose, in its order: repeat the flag, or separate them with commas."`
}

// planRow is a step of a plan, or a credential or shared endpoint that is in none, and the reason.
type planRow struct {
	Step     *int            `json:"step" list:"step"`
	Provider output.Optional `json:"provider" list:"provider"`
	Uses     string          `json:"uses" list:"uses"` // credential, shared endpoint or nothing
	ID       output.Optional `json:"credential_id" list:"credential,short"`
	Label    output.Optional `json:"label" list:"label"`
	WhyNot   output.Optional `json:"why_not" list:"why not,short,16"`
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
	plan := routing.NewPlan(stored, routing.Request{
		Model: c.Model, APIKeyHash: ids.KeyHash(c.APIKeyHash), UserID: c.User, Providers: each(c.Providers, func(p arguments.Provider) string { return string(p) }),
	})
	return output.List(s.out, rowsOf(plan, stored), "step", "provider", "uses", "credential", "why not", "label")
}

// caller finds the calling key. It returns a Refusal if a router refuses every request with it.
func (c credentialPlan) caller(ctx context.Context, s *session) (auth.Key, error) {
	key, err := oneKey{keySearch{c.Account}, c.APIKeyHash}.find(ctx, s)
	if err != nil {
		return auth.Key{}, err
	}
	state, answer := stateOf(key, s.now()), ""
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
		return auth.Key{}, acts.Refusal(fmt.Sprintf("key %s is %s: a router answers its requests with %s", key.Hash.Short(), is, answer))
	}
	return key, nil
}

func rowsOf(plan routing.Plan, stored []byok.Credential) (rows []planRow) {
	find := func(id ids.Credential) byok.Credential {
		return stored[slices.IndexFunc(stored, func(c byok.Credential) bool { return c.ID == id })]
	}
	credential := func(id ids.Credential) planRow {
		c := find(id)
		return planRow{Provider: output.Optional(c.Provider), Uses: "credential", ID: output.Optional(id), Label: output.Optional(marked(c))}
	}
	shared := func(provider string) planRow {
		return planRow{Provider: output.Optional(provider), Uses: "shared endpoint"}
	}
	for i, step := range plan.Steps {
		row := shared(step.Provider)
		if !step.IsShared() {
			row = credential(step.Credential)
		}
		row.Step = aws.Int(i + 1)
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		rows = append(rows, planRow{Uses: "nothing", WhyNot: "no step is left: a router refuses the request"})
	}
	for _, skipped := range plan.Skipped {
		row := credential(skipped.Credential)
		row.WhyNot = output.Optional(skipped.Reason)
		rows = append(rows, row)
	}
	for _, removed := range plan.Removed {
		by := each(removed.By, func(id ids.Credential) string {
			if find(id).BYOKOnly {
				return string(id) + " (is_byok_only)"
			}
			return string(id) + " (is_required)"
		})
		row := shared(removed.Provider)
		row.WhyNot = output.Optional("removed by " + strings.Join(by, ", "))
		rows = append(rows, row)
	}
	return rows
}
