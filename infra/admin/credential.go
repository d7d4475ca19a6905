package main

import (
	"context"
	"strconv"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

type credentialCommands struct {
	List    credentialList    `cmd:"" reads:"" help:"List the credentials of a workspace, by label: keys are never shown."`
	Disable credentialDisable `cmd:"" help:"Keep a credential from being used."`
	Enable  credentialEnable  `cmd:"" help:"Let a credential be used again."`
	Delete  credentialDelete  `cmd:"" help:"Remove a credential and its sealed key for good."`
	Rewrap  credentialRewrap  `cmd:"" help:"Move every credential of every account to another sealing key, without opening one. Repeat it if it was interrupted."`
}

type credentialList struct {
	place
}

type oneCredential struct {
	place
	ID ids.Credential `arg:"" name:"credential" help:"The credential."`
}

type (
	credentialDisable struct{ oneCredential }
	credentialEnable  struct{ oneCredential }
	credentialDelete  struct {
		oneCredential
		confirmation
	}
)

// credentialView has the names that the API has.
type credentialView struct {
	ID                  ids.Credential `json:"id"`
	Name                string         `json:"name"`
	Provider            string         `json:"provider"`
	Label               string         `json:"label"`
	Workspace           ids.Workspace  `json:"workspace_id"`
	CreatedAt           optional       `json:"created_at"`
	Disabled            bool           `json:"disabled"`
	BYOKOnly            bool           `json:"is_byok_only"`
	Fallback            bool           `json:"is_fallback"`
	Required            bool           `json:"is_required"`
	AllowedAPIKeyHashes []string       `json:"allowed_api_key_hashes"`
	AllowedModels       []string       `json:"allowed_models"`
	AllowedUserIDs      []string       `json:"allowed_user_ids"`
	SortOrder           int64          `json:"sort_order"`
}

func viewCredential(c byok.Credential) credentialView {
	return credentialView{
		ID: c.ID, Name: c.Name, Provider: c.Provider, Label: c.Label, Workspace: c.Workspace, CreatedAt: when(c.CreatedAt),
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
	return list(s.out, views,
		column[credentialView]{"CREDENTIAL", func(v credentialView) string { return string(v.ID) }},
		column[credentialView]{"PROVIDER", func(v credentialView) string { return v.Provider }},
		column[credentialView]{"ORDER", func(v credentialView) string { return strconv.FormatInt(v.SortOrder, 10) }},
		column[credentialView]{"NAME", func(v credentialView) string { return v.Name }},
		column[credentialView]{"LABEL", func(v credentialView) string { return v.Label }},
		column[credentialView]{"STATE", credentialView.state},
		column[credentialView]{"CREATED", func(v credentialView) string { return string(v.CreatedAt) }},
	)
}

// Run disables a credential.
func (c credentialDisable) Run(ctx context.Context, s *session) error {
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
				return subject{"removes " + named("credential", v.Name, string(c.ID)) + " and its sealed key for good",
					[]string{v.Name, string(c.ID)}}, nil
			}
		}
		return subject{}, byok.ErrNotFound
	})
	if err != nil {
		return err
	}
	return c.change(ctx, s, "credential.delete", "deleted", s.credentials.Delete)
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
	return s.out.say(changed{string(c.ID), state}, "Credential %s is %s.", c.ID, state)
}
