package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// search says in which workspaces to look for credentials.
type search struct {
	Account   ids.Account   `env:"SIGNALBOX_ACCOUNT" placeholder:"ID" help:"Look in this account alone. If omitted, in all accounts: that reads the whole credentials table."`
	Workspace ids.Workspace `placeholder:"ID" help:"Look in this workspace alone."`
}

// looked is the result of a search.
type looked struct {
	where       string // in words
	credentials []byok.Credential
	unread      []ids.Workspace // those of the account that have an unreadable row
}

func (c search) look(ctx context.Context, s *session) (looked, error) {
	if c.Account != "" {
		return c.lookInAccount(ctx, s)
	}
	all, unreadable, err := s.credentials.ListAll(ctx)
	if err != nil {
		return looked{}, err
	}
	if unreadable > 0 {
		s.warn(output.Count(unreadable, "row") + " of the credentials table cannot be read: `admin restore check` names them")
	}
	found := looked{where: "all accounts", credentials: all}
	if c.Workspace != "" {
		found.where = "workspace " + string(c.Workspace)
		found.credentials = slices.DeleteFunc(all, func(v byok.Credential) bool { return v.Workspace != c.Workspace })
	}
	return found, nil
}

func (c search) lookInAccount(ctx context.Context, s *session) (looked, error) {
	workspaces, err := s.registry.ListWorkspaces(ctx, c.Account)
	if err != nil {
		return looked{}, err
	}
	found := looked{where: fmt.Sprintf("the %s of account %s", output.Count(len(workspaces), "workspace"), c.Account)}
	if c.Workspace != "" {
		found.where = "workspace " + string(c.Workspace)
		workspaces = slices.DeleteFunc(workspaces, func(w auth.Workspace) bool { return w.ID != c.Workspace })
		if len(workspaces) == 0 {
			return looked{}, auth.ErrNoWorkspace
		}
	}
	for _, w := range workspaces {
		stored, err := s.credentials.List(ctx, w.ID)
		if errors.Is(err, byok.ErrUnreadable) {
			found.unread = append(found.unread, w.ID)
			s.warn(fmt.Sprintf("workspace %s has a credential that cannot be read, and was left out", w.ID))
			continue
		}
		if err != nil {
			return looked{}, err
		}
		found.credentials = append(found.credentials, stored...)
	}
	return found, nil
}

// oneCredential is the credential a command is about, wherever it is.
type oneCredential struct {
	search
	ID arguments.CredentialPrefix `arg:"" name:"credential" help:"The credential's id, or a prefix of it that no other has (8 characters or more)."`
}

// find finds the credential. Of a workspace with an unreadable row it is taken at its
// word: a credential must be revocable whatever state the others are in.
func (c oneCredential) find(ctx context.Context, s *session) (byok.Credential, error) {
	found, err := c.look(ctx, s)
	if err != nil {
		return byok.Credential{}, err
	}
	matching := slices.DeleteFunc(found.credentials, func(v byok.Credential) bool { return !strings.HasPrefix(string(v.ID), string(c.ID)) })
	id, whole := ids.Parse[ids.Credential](string(c.ID))
	switch {
	case len(matching) == 1:
		return matching[0], nil
	case len(matching) > 1:
		return byok.Credential{}, exit.UsageError(fmt.Sprintf("several credentials have an id with that prefix, %s and %s among them: give more of it", matching[0].ID, matching[1].ID))
	case whole && c.Workspace != "" && len(found.unread) > 0:
		return byok.Credential{ID: id, Account: c.Account, Workspace: c.Workspace}, nil
	case len(found.unread) > 0:
		return byok.Credential{}, fmt.Errorf("%w in %s that can be read: name the workspace with --workspace, and the whole id", byok.ErrNotFound, found.where)
	}
	return byok.Credential{}, fmt.Errorf("%w: looked in %s", byok.ErrNotFound, found.where)
}

type credentialFind struct {
	search
	outline
	Text string `arg:"" help:"A label (sk-...AbCd), its last characters, a provider, a part of the name, or the beginning of an id. - reads a leaked key from standard input and looks for its label."`
}

// Run finds credentials by a text or a leaked key.
func (c credentialFind) Run(ctx context.Context, s *session) error {
	matches, err := c.criterion(ctx, s)
	if err != nil {
		return err
	}
	found, err := c.look(ctx, s)
	if err != nil {
		return err
	}
	matching := slices.DeleteFunc(slices.Clone(found.credentials), func(v byok.Credential) bool { return !matches(v) })
	if len(matching) == 0 {
		return fmt.Errorf("%w: looked in %s, at %s", byok.ErrNotFound, found.where, output.Count(len(found.credentials), "credential"))
	}
	return c.show(s, matching, true)
}

// criterion returns whether a credential matches. A key in the wrong place is a text,
// too.
func (c credentialFind) criterion(ctx context.Context, s *session) (func(byok.Credential) bool, error) {
	if c.Text != "-" {
		text, label := strings.ToLower(c.Text), byok.Label([]byte(c.Text))
		return func(v byok.Credential) bool {
			return strings.HasSuffix(v.Label, c.Text) || v.Provider == text || strings.HasPrefix(string(v.ID), text) ||
				strings.Contains(strings.ToLower(v.Name), text) || v.Label == label && label != byok.Label(nil)
		}, nil
	}
	key, err := s.leakedKey(ctx)
	if err != nil {
		return nil, err
	}
	label := byok.Label([]byte(key))
	if label == byok.Label(nil) {
		s.warn("a key that is short or a JSON document has no label of its own: all of them are listed")
	}
	return func(v byok.Credential) bool { return v.Label == label }, nil
}

type credentialShow struct{ oneCredential }

// Run shows all of a credential but its key.
func (c credentialShow) Run(ctx context.Context, s *session) error {
	found, err := c.find(ctx, s)
	if err != nil {
		return err
	}
	list := func(of func(credentialView) []string) func(credentialView) string {
		return func(v credentialView) string {
			switch values := of(v); {
			case values == nil:
				return "any"
			case len(values) == 0:
				return "none"
			default:
				return strings.Join(values, ", ")
			}
		}
	}
	yes := func(of func(credentialView) bool) func(credentialView) string {
		return func(v credentialView) string { return map[bool]string{true: "yes", false: "no"}[of(v)] }
	}
	return output.One(s.out, viewCredential(found),
		output.NewColumn("credential", func(v credentialView) string { return string(v.ID) }),
		output.NewColumn("name", func(v credentialView) string { return v.Name }),
		output.NewColumn("label", credentialView.label),
		output.NewColumn("provider", func(v credentialView) string { return v.Provider }),
		output.NewColumn("sort order", func(v credentialView) string { return strconv.FormatInt(v.SortOrder, 10) }),
		output.NewColumn("state", credentialView.state),
		output.NewColumn("account", func(v credentialView) string { return string(v.Account) }),
		output.NewColumn("workspace", func(v credentialView) string { return string(v.Workspace) }),
		output.NewColumn("created", func(v credentialView) string { return string(v.CreatedAt) }),
		output.NewColumn("is_byok_only", yes(func(v credentialView) bool { return v.BYOKOnly })),
		output.NewColumn("is_fallback", yes(func(v credentialView) bool { return v.Fallback })),
		output.NewColumn("is_required", yes(func(v credentialView) bool { return v.Required })),
		output.NewColumn("allowed models", list(func(v credentialView) []string { return v.AllowedModels })),
		output.NewColumn("allowed user ids", list(func(v credentialView) []string { return v.AllowedUserIDs })),
		output.NewColumn("allowed API key hashes", list(func(v credentialView) []string { return v.AllowedAPIKeyHashes })),
	)
}
