package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/rewrap"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
)

type credentialCommands struct {
	List      credentialList      `cmd:"" reads:"" help:"List the credentials of a workspace, by label: keys are never shown."`
	Disable   credentialDisable   `cmd:"" help:"Disable a credential: routers skip it."`
	Enable    credentialEnable    `cmd:"" help:"Enable a disabled credential."`
	Delete    credentialDelete    `cmd:"" help:"Delete a credential and its sealed key. This cannot be undone."`
	Plan      credentialPlan      `cmd:"" reads:"" help:"Show which credentials and shared endpoints a router would try for a request, in which order, and why it would skip the others."`
	Supersede credentialSupersede `cmd:"" help:"Rotate a provider's key without a gap: the new credential gets the old one's sort_order, and the old one is disabled."`
	Rewrap    credentialRewrap    `cmd:"" help:"Rewrap every credential of every account under another sealing key, without opening one. Repeat it if it was interrupted."`
}

type credentialList struct {
	place
}

type oneCredential struct {
	place
	ID ids.Credential `arg:"" name:"credential" help:"The credential."`
}

type (
	credentialDisable struct {
		oneCredential
		Yes bool `help:"Do not ask for a confirmation where this lets requests use a shared endpoint. Without a terminal none is asked for."`
	}
	credentialEnable struct{ oneCredential }
	credentialDelete struct {
		oneCredential
		confirmation
	}
)

type credentialSupersede struct {
	place
	Old    ids.Credential `arg:"" help:"The credential that is replaced. It is disabled, and can be enabled again."`
	New    ids.Credential `arg:"" help:"The credential that takes its place. It is enabled, and has the same flags and allow-lists."`
	Anyway bool           `help:"Supersede also where the two differ in flags or allow-lists."`
}

// credentialView has the names that the API has.
type credentialView struct {
	ID                  ids.Credential  `json:"id"`
	Name                string          `json:"name"`
	Provider            string          `json:"provider"`
	Label               string          `json:"label"`
	Workspace           ids.Workspace   `json:"workspace_id"`
	CreatedAt           output.Optional `json:"created_at"`
	Disabled            bool            `json:"disabled"`
	BYOKOnly            bool            `json:"is_byok_only"`
	Fallback            bool            `json:"is_fallback"`
	Required            bool            `json:"is_required"`
	AllowedAPIKeyHashes []string        `json:"allowed_api_key_hashes"`
	AllowedModels       []string        `json:"allowed_models"`
	AllowedUserIDs      []string        `json:"allowed_user_ids"`
	SortOrder           int64           `json:"sort_order"`
}

func viewCredential(c byok.Credential) credentialView {
	return credentialView{
		ID: c.ID, Name: c.Name, Provider: c.Provider, Label: c.Label, Workspace: c.Workspace, CreatedAt: output.When(c.CreatedAt),
		Disabled: c.Disabled, BYOKOnly: c.BYOKOnly, Fallback: c.Fallback, Required: c.Required,
		AllowedAPIKeyHashes: c.AllowedAPIKeyHashes, AllowedModels: c.AllowedModels, AllowedUserIDs: c.AllowedUserIDs,
		SortOrder: c.SortOrder,
	}
}

func (v credentialView) state() string {
	if v.Disabled {
		return "disabled"
	}
	return "active"
}

// Run lists credentials.
func (c credentialList) Run(ctx context.Context, s *session) error {
	workspace, err := s.workspace(ctx, c.place)
	if err != nil {
		return err
	}
	found, err := s.credentials.List(ctx, workspace.ID)
	if err != nil {
		return err
	}
	views := make([]credentialView, len(found))
	for i, credential := range found {
		views[i] = viewCredential(credential)
	}
	return output.List(s.out, views,
		output.NewColumn("CREDENTIAL", func(v credentialView) string { return string(v.ID) }),
		output.NewColumn("PROVIDER", func(v credentialView) string { return v.Provider }),
		output.NewColumn("ORDER", func(v credentialView) string { return strconv.FormatInt(v.SortOrder, 10) }),
		output.NewColumn("NAME", func(v credentialView) string { return v.Name }),
		output.NewColumn("LABEL", func(v credentialView) string { return v.Label }),
		output.NewColumn("STATE", credentialView.state),
		output.NewColumn("CREATED", func(v credentialView) string { return string(v.CreatedAt) }),
	)
}

// Run disables a credential. Since that can be undone, it asks only where the
// platform's credit is at stake and there is a terminal to ask on.
func (c credentialDisable) Run(ctx context.Context, s *session) error {
	if workspace, err := s.workspace(ctx, c.place); err == nil { // else the change reports it
		c.Workspace = workspace.ID // the default may change meanwhile
		v, warning := s.reopening(ctx, workspace, c.ID)
		s.warn(warning)
		if v.ID != "" && s.interactive {
			if err := (confirmation{c.Yes}).confirm(ctx, s, func() (subject, error) {
				return subject{"disables " + named("credential", v.Name, string(v.ID)), []string{v.Name, string(v.ID)}}, nil
			}); err != nil {
				return err
			}
		}
	}
	return c.change(ctx, s, "credential.disable", "disabled", s.credentials.Disable)
}

// Run enables a credential.
func (c credentialEnable) Run(ctx context.Context, s *session) error {
	return c.change(ctx, s, "credential.enable", "active", s.credentials.Enable)
}

// Run deletes a credential.
func (c credentialDelete) Run(ctx context.Context, s *session) error {
	err := c.confirm(ctx, s, func() (subject, error) {
		workspace, err := s.workspace(ctx, c.place)
		if err != nil {
			return subject{}, err
		}
		c.Workspace = workspace.ID // the default may change meanwhile
		stored, err := s.credentials.List(ctx, workspace.ID)
		if err != nil {
			return subject{}, err
		}
		for _, v := range stored {
			if v.ID == c.ID {
				_, warning := s.reopening(ctx, workspace, c.ID)
				s.warn(warning)
				return subject{"removes " + named("credential", v.Name, string(c.ID)) + " and its sealed key for good",
					[]string{v.Name, string(c.ID)}}, nil
			}
		}
		return subject{}, byok.ErrNotFound
	})
	if err != nil {
		return err
	}
	if c.Yes {
		if workspace, err := s.workspace(ctx, c.place); err == nil { // else the deletion reports it
			_, warning := s.reopening(ctx, workspace, c.ID)
			s.warn(warning)
		}
	}
	return c.change(ctx, s, "credential.delete", "deleted", s.credentials.Delete)
}

// Run gives a credential the place of another.
func (c credentialSupersede) Run(ctx context.Context, s *session) error {
	workspace, err := s.workspace(ctx, c.place)
	moved, warning := false, ""
	if err == nil {
		if c.Anyway {
			_, warning = s.reopening(ctx, workspace, c.Old)
		}
		moved, err = s.credentials.Supersede(ctx, workspace.ID, c.Old, c.New, c.Anyway)
	}
	s.audit(ctx, "credential.supersede", err, "account", c.Account, "workspace", workspace.ID, "credential", c.Old, "successor", c.New, "anyway", c.Anyway)
	if err != nil {
		return err
	}
	if !moved {
		return s.out.Say(changed{string(c.Old), "unchanged"}, "Nothing was changed: %s is disabled, and %s comes before it already.", c.Old, c.New)
	}
	s.warn(warning) // not before: it may have been refused
	return s.out.Say(changed{string(c.Old), "superseded"}, "Credential %s has the place of %s, which is disabled.", c.New, c.Old)
}

func (c oneCredential) change(ctx context.Context, s *session, action, state string, change func(context.Context, ids.Workspace, ids.Credential) error) error {
	workspace, err := s.workspace(ctx, c.place)
	if err == nil {
		err = change(ctx, workspace.ID, c.ID)
	}
	s.audit(ctx, action, err, "account", c.Account, "workspace", workspace.ID, "credential", c.ID)
	if err != nil {
		return err
	}
	return s.out.Say(changed{string(c.ID), state}, "Credential %s is %s.", c.ID, state)
}

// reopening returns what to warn of where requests may use the platform's shared
// endpoint again once the credential is disabled or deleted, with the credential; ""
// where they may not. It stops nothing: a credential must be revocable whatever state
// the others are in.
func (s *session) reopening(ctx context.Context, w auth.Workspace, id ids.Credential) (byok.Credential, string) {
	if !w.DeletedAt.IsZero() {
		return byok.Credential{}, "" // a router refuses every request for it
	}
	stored, err := s.credentials.List(ctx, w.ID)
	if err != nil {
		return byok.Credential{}, "it is not known whether requests may use a shared endpoint afterwards: " + exit.Sentence(err)
	}
	reopened := routing.Reopened(stored, id)
	if reopened.IsEmpty() {
		return byok.Credential{}, ""
	}
	quoted := make([]string, len(reopened.Listed))
	for i, model := range reopened.Listed {
		quoted[i] = strconv.Quote(model)
	}
	models := strings.Join(quoted, ", ")
	switch {
	case reopened.AllBut && models == "":
		models = "every model"
	case reopened.AllBut:
		models = "every model but " + models
	}
	i := slices.IndexFunc(stored, func(c byok.Credential) bool { return c.ID == id })
	return stored[i], fmt.Sprintf("afterwards requests for %s may use the shared endpoint of %s, which spends the platform's credit: no other enabled credential removes it",
		models, stored[i].Provider)
}

func (s *session) warn(warning string) {
	if warning != "" {
		s.note("warning: %s", warning)
	}
}

// credentialRewrap is about the credentials of all accounts: it takes none.
type credentialRewrap struct {
	To     arguments.KeyARN   `required:"" placeholder:"ARN" help:"The key to move to. New credentials must be sealed under it already."`
	From   []arguments.KeyARN `placeholder:"ARN" help:"A key to move from; can be repeated. If omitted, the stack's own key."`
	Rate   int                `default:"100" placeholder:"N" help:"Rewrap at most N credentials a second (${default}), and read at most as many pages of 50."`
	DryRun bool               `help:"Only count the credentials that would be rewrapped."`
}

// Run moves all credentials, or counts them. Interrupted anywhere, killed
// included, it may be run again; so may two at once.
func (c credentialRewrap) Run(ctx context.Context, s *session) error {
	from, err := c.sources(s.outputs)
	if err != nil {
		return err
	}
	run := rewrap.NewRun(s.wrappings, s.kms, c.To, from, c.Rate)
	found, err := run.Survey(ctx)
	if err != nil {
		return err
	}
	if c.DryRun {
		return rewrap.ShowSurvey(s.out, c.To, from, found)
	}
	attrs := []any{"to", c.To, "from", from}
	s.begin(ctx, "credential.rewrap", attrs...)
	began := s.now()
	result, err := run.MoveAll(ctx, found, s.progress)
	result.Seconds = s.now().Sub(began).Seconds()
	s.audit(ctx, "credential.rewrap", err, append(attrs, "rewrapped", result.Rewrapped,
		"already_there", result.AlreadyThere, "gone_meanwhile", result.Overtaken, "failed", len(result.Failed))...)
	if shown := result.Show(s.out); err == nil {
		err = shown
	}
	return err
}

// sources are the keys that credentials are taken from. The key that a record
// names is not enough: see seal.NewRewrapper.
func (c credentialRewrap) sources(o target.Outputs) ([]arguments.KeyARN, error) {
	if c.Rate < 1 {
		return nil, exit.UsageError("--rate must be at least 1")
	}
	if string(c.To) != o.SealingKeyArn {
		return nil, exit.Refusal(fmt.Sprintf("new credentials are sealed under %s, not under %s: deploy with NextSealingKeyArn first", o.SealingKeyArn, c.To))
	}
	if len(c.From) > 0 {
		return c.From, nil
	}
	if string(c.To) == o.OwnSealingKeyArn {
		return nil, exit.UsageError("--to is the stack's own key: name with --from the key that credentials are under now")
	}
	return []arguments.KeyARN{arguments.KeyARN(o.OwnSealingKeyArn)}, nil
}
