package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
)

type credentialCommands struct {
	List      credentialList      `cmd:"" reads:"" help:"List the credentials of a workspace, by label: keys are never shown. A key of an unusual form is marked (odd), (document) or (no header) and an API key of this service (signalbox key)."`
	Find      credentialFind      `cmd:"" reads:"" anywhere:"" help:"Find credentials in all workspaces by label, last characters, provider, name, id or allowed API key, or by a leaked key."`
	Show      credentialShow      `cmd:"" reads:"" anywhere:"" help:"Show a credential with its flags and allow-lists, wherever it is."`
	Disable   credentialDisable   `cmd:"" anywhere:"" help:"Disable credentials, wherever they are: routers skip them from the next request on."`
	Enable    credentialEnable    `cmd:"" anywhere:"" help:"Enable disabled credentials, wherever they are."`
	Delete    credentialDelete    `cmd:"" anywhere:"" help:"Delete a credential and its sealed key, wherever it is. This cannot be undone."`
	Plan      credentialPlan      `cmd:"" reads:"" help:"Show which credentials and shared endpoints a router would try for a request, in which order, and why it would skip the others."`
	Supersede credentialSupersede `cmd:"" anywhere:"" help:"Rotate a provider's key without a gap: the new credential gets the old one's sort_order, and the old one is disabled."`
	Rewrap    credentialRewrap    `cmd:"" help:"Rewrap every credential of every account under another sealing key, without opening one. Repeat it if it was interrupted."`
}

type credentialList struct{ scope }

type (
	credentialDisable struct {
		manyCredentials
		Yes bool `help:"Do not ask for a confirmation if this lets requests use a shared endpoint. Without a terminal it never asks."`
	}
	credentialEnable struct{ manyCredentials }
	credentialDelete struct {
		oneCredential
		confirmation
	}
)

type credentialSupersede struct {
	search
	Yes bool                       `help:"Do not ask for a confirmation if NEW is older than OLD. Required without a terminal."`
	Old arguments.CredentialPrefix `arg:"" help:"The credential that is replaced, or a prefix of its id. It is disabled, and can be enabled again."`
	New arguments.CredentialPrefix `arg:"" help:"The credential that takes its place, in the same workspace. It is enabled, and has the same flags and allow-lists."`
}

// credentialView has the API's names for scripts, and titles for people.
type credentialView struct {
	ID        ids.Credential  `json:"id" title:"credential" list:"id,short"`
	Name      string          `json:"-" title:"name" list:"name,16"`
	Provider  string          `json:"-" title:"provider"`
	Label     string          `json:"label"`
	Marked    string          `json:"-" title:"label"`
	KeyForm   output.Optional `json:"key_form"`            // see byok.Form
	State     string          `json:"state" title:"state"` // active or disabled
	SortOrder int64           `json:"sort_order" title:"sort order" list:"order"`
	Workspace ids.Workspace   `json:"workspace_id" title:"workspace" list:"workspace,short"`
	Account   ids.Account     `json:"account_id" title:"account" list:"account,short"`
	CreatedAt output.Optional `json:"created_at" title:"created" list:"age,age"`
	Flags     string          `json:"-" list:"flags"`
	Limits    string          `json:"-" list:"only for"`
	byok.Settings
}

func viewCredential(c byok.Credential) credentialView {
	state := "active"
	if c.Disabled {
		state = "disabled"
	}
	return credentialView{
		ID: c.ID, Name: c.Name, Provider: c.Provider, Label: c.Label, Marked: marked(c), KeyForm: output.Optional(c.Form), State: state, SortOrder: c.SortOrder,
		Workspace: c.Workspace, Account: c.Account, CreatedAt: output.When(c.CreatedAt), Flags: flags(c.Settings), Limits: limits(c.Settings), Settings: c.Settings,
	}
}

// unusual is the form of the key, "" if it is usual.
func unusual(c byok.Credential) string {
	if c.Form == byok.Header {
		return ""
	}
	return strings.ReplaceAll(string(c.Form), "_", " ")
}

// marked is the label, and the key's form if it is unusual.
func marked(c byok.Credential) string {
	if form := unusual(c); form != "" {
		return c.Label + " (" + form + ")"
	}
	return c.Label
}

func showCredentials(s *session, found []byok.Credential, titles ...string) error {
	return output.List(s.out, each(found, viewCredential), titles...)
}

func flags(c byok.Settings) string {
	var set []string
	for name, value := range c.ByName() {
		if flag, isFlag := strings.CutPrefix(name, "is_"); isFlag && value == true {
			set = append(set, flag)
		}
	}
	return strings.Join(set, ", ")
}

func limits(c byok.Settings) string {
	var limits []string
	if c.AllowedModels != nil {
		limits = append(limits, acts.Count(len(c.AllowedModels), "model"))
	}
	if c.AllowedAPIKeyHashes != nil {
		limits = append(limits, acts.Count(len(c.AllowedAPIKeyHashes), "key"))
	}
	if c.AllowedUserIDs != nil {
		limits = append(limits, acts.Count(len(c.AllowedUserIDs), "user"))
	}
	return strings.Join(limits, ", ")
}

func (c credentialList) Run(ctx context.Context, s *session) error {
	workspace, err := s.Registry.FindWorkspace(ctx, c.Account, c.Workspace)
	if err != nil {
		return err
	}
	found, err := s.Credentials.List(ctx, workspace.ID)
	if err != nil {
		return err
	}
	if len(s.RefusedByRouters(ctx, found)) > 0 {
		s.Warn(fmt.Sprintf("routers refuse workspace %s: %v. Delete some", workspace.ID, byok.ErrTooMany))
	}
	return showCredentials(s, found, "id", "name", "provider", "label", "state", "order", "age", "flags", "only for")
}

// Run disables credentials. That can be undone, so it asks only on a terminal, and only if
// requests may then spend the platform's credit.
func (c credentialDisable) Run(ctx context.Context, s *session) error {
	return changeEach(ctx, s, "credential", "disabled", c.IDs, func(ctx context.Context, id arguments.CredentialPrefix) error {
		one := oneCredential{c.search, id}
		found, err := one.findForChange(ctx, s)
		if err == nil {
			reopens, warning := s.reopening(ctx, found)
			s.Warn(warning)
			if reopens && s.interactive {
				if err := (confirmation{c.Yes}).confirm(ctx, s, "disables "+named("credential", found.Name, string(found.ID)), found.Name, string(found.ID)); err != nil {
					return err
				}
			}
			err = s.Credentials.Disable(ctx, found.Workspace, found.ID)
		}
		err = orUnchanged(err, found.Disabled)
		s.Audit(ctx, "credential.disable", err, one.attrs(found))
		return one.say(s, err, found, "disabled")
	})
}

func (c credentialEnable) Run(ctx context.Context, s *session) error {
	return changeEach(ctx, s, "credential", "enabled", c.IDs, func(ctx context.Context, id arguments.CredentialPrefix) error {
		one := oneCredential{c.search, id}
		found, err := one.findForChange(ctx, s)
		if err == nil {
			err = s.Credentials.Enable(ctx, found.Workspace, found.ID)
		}
		isRead := found.CreatedAt.Unix() > 0 // a damaged one has no time
		err = orUnchanged(err, isRead && !found.Disabled)
		s.Audit(ctx, "credential.enable", err, one.attrs(found))
		return one.say(s, err, found, "active")
	})
}

func (c credentialDelete) Run(ctx context.Context, s *session) error {
	found, err := c.findForChange(ctx, s)
	if err == nil {
		_, warning := s.reopening(ctx, found)
		s.Warn(warning)
		if err := c.confirm(ctx, s, "removes "+named("credential", found.Name, string(found.ID))+" and its sealed key for good", found.Name, string(found.ID)); err != nil {
			return err
		}
		err = s.Credentials.Delete(ctx, found.Workspace, found.ID)
	}
	s.Audit(ctx, "credential.delete", err, c.attrs(found))
	return c.say(s, err, found, "deleted")
}

func (c credentialSupersede) Run(ctx context.Context, s *session) error {
	moved, successor := false, byok.Credential{}
	old, err := oneCredential{c.search, c.Old}.findForChange(ctx, s)
	if err == nil {
		successor, err = oneCredential{search{old.Account, old.Workspace}, c.New}.findForChange(ctx, s)
	}
	if err == nil && successor.CreatedAt.Before(old.CreatedAt) && successor.CreatedAt.Unix() > 0 {
		effect := fmt.Sprintf("disables %s, which is newer than %s", named("credential", old.Name, string(old.ID)), named("credential", successor.Name, string(successor.ID)))
		if err := (confirmation{c.Yes}).confirm(ctx, s, effect, old.Name, string(old.ID)); err != nil {
			return err
		}
	}
	if err == nil {
		moved, err = s.Credentials.Supersede(ctx, s.pause, old.Workspace, old.ID, successor.ID)
	}
	s.Audit(ctx, "credential.supersede", err, []any{"account", old.Account, "workspace", old.Workspace,
		"credential", cmp.Or(string(old.ID), string(c.Old)), "successor", cmp.Or(string(successor.ID), string(c.New))})
	if !moved {
		return s.say(err, changed{string(old.ID), "unchanged"}, "Nothing was changed: %s is disabled, and %s comes before it already.", old.ID, successor.ID)
	}
	return s.say(err, changed{string(old.ID), "superseded"}, "Credential %s has the place of %s, which is disabled.", successor.ID, old.ID)
}

// attrs name the credential in an audit line, also one that was not found.
func (c oneCredential) attrs(found byok.Credential) []any {
	return []any{"account", cmp.Or(found.Account, c.Account), "workspace", found.Workspace, "credential", cmp.Or(string(found.ID), string(c.ID))}
}

func (c oneCredential) say(s *session, err error, found byok.Credential, state string) error {
	return s.sayState(err, string(found.ID), "Credential "+string(found.ID), state)
}

// reopening returns a warning if requests may use the platform's shared endpoint after the
// credential is disabled or deleted, or if that is not known. It returns no error, because
// damage of other rows must not prevent a revocation.
func (s *session) reopening(ctx context.Context, c byok.Credential) (reopens bool, warning string) {
	const unknown = "it is not known whether requests may use a shared endpoint afterwards: "
	w, err := s.Registry.FindWorkspace(ctx, c.Account, c.Workspace)
	if err != nil {
		return false, unknown + acts.ErrorText(err, true)
	}
	if !w.DeletedAt.IsZero() {
		return false, "" // a router refuses every request of the workspace
	}
	stored, err := s.Credentials.List(ctx, w.ID)
	if err != nil {
		return false, unknown + acts.ErrorText(err, true)
	}
	reopened := routing.Reopened(stored, c.ID)
	if reopened.IsEmpty() {
		return false, ""
	}
	models := strings.Join(each(reopened.Listed, strconv.Quote), ", ")
	switch {
	case reopened.AllBut && models == "":
		models = "every model"
	case reopened.AllBut:
		models = "every model but " + models
	}
	return true, fmt.Sprintf("afterwards requests for %s may use the shared endpoint of %s, which spends the platform's credit: no other enabled credential removes it",
		models, c.Provider)
}
