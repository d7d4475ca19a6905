package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// search defines the workspaces in which a command looks for credentials.
type search struct {
	Account   ids.Account   `env:"SIGNALBOX_ACCOUNT" placeholder:"ID" help:"Look in this account alone. Without it and --workspace: in all accounts, which reads the whole credentials table."`
	Workspace ids.Workspace `placeholder:"ID" help:"Look in this workspace alone."`
}

// looked is the result of a search.
type looked struct {
	where       string // in words
	credentials []byok.Credential
	unread      int // rows or workspaces that cannot be read, and were left out
}

// absent is the error if no credential matches. If unreadable ones were left out, it is not
// ErrNotFound, because the credential may be one of them.
func (l looked) absent() error {
	if l.unread > 0 {
		return fmt.Errorf("no readable credential in %s matches, but some rows are unreadable: give --workspace and the whole id, or search all accounts", l.where)
	}
	return fmt.Errorf("%w: looked in %s, at %s", byok.ErrNotFound, l.where, output.Count(len(l.credentials), "credential"))
}

// look reads no row of an account or workspace, because a damaged one must not prevent a
// revocation.
func (c search) look(ctx context.Context, s *session) (looked, error) {
	workspaces, found := []ids.Workspace{c.Workspace}, looked{where: "workspace " + string(c.Workspace)}
	switch {
	case c.Account != "":
		listed, err := s.registry.ListWorkspaceIDs(ctx, c.Account)
		if err != nil {
			return looked{}, err
		}
		if c.Workspace == "" {
			workspaces, found.where = listed, fmt.Sprintf("the %s of account %s", output.Count(len(listed), "workspace"), c.Account)
		} else if !slices.Contains(listed, c.Workspace) {
			return looked{}, auth.ErrNoWorkspace
		}
	case c.Workspace == "":
		all, unreadable, err := s.credentials.ListAll(ctx)
		if unreadable > 0 {
			s.warn(output.Count(unreadable, "row") + " of the credentials table cannot be read: `admin restore check` names them")
		}
		return looked{where: "all accounts", credentials: all, unread: unreadable}, err
	}
	for _, w := range workspaces {
		stored, err := s.credentials.List(ctx, w)
		if errors.Is(err, byok.ErrUnreadable) {
			found.unread++
			s.warn(fmt.Sprintf("workspace %s was left out: it has a credential that cannot be read", w))
			continue
		}
		if err != nil {
			return looked{}, err
		}
		found.credentials = append(found.credentials, stored...)
	}
	return found, nil
}

// oneCredential names the credential of a command, in any workspace.
type oneCredential struct {
	search
	ID arguments.CredentialPrefix `arg:"" name:"credential" help:"The credential's id, or a prefix of it that no other has (8 characters or more)."`
}

// find finds the credential. If the workspace of --workspace has an unreadable row, find also
// accepts a whole id that it did not find: damage must not prevent a revocation.
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
		return byok.Credential{}, exit.UsageError(fmt.Sprintf("several credential ids begin with this prefix, among them %s and %s: give more characters", matching[0].ID, matching[1].ID))
	case whole && c.Workspace != "" && found.unread > 0:
		return byok.Credential{ID: id, Account: c.Account, Workspace: c.Workspace}, nil
	}
	return byok.Credential{}, found.absent()
}

type credentialFind struct {
	search
	Text string `arg:"" help:"A label (sk-...AbCd), its last characters, a provider, a part of the name, or the beginning of an id or of an allowed API key's hash. - reads a leaked key from standard input and looks for its label."`
}

// Run finds credentials by a text or a leaked key.
func (c credentialFind) Run(ctx context.Context, s *session) error {
	matches, unsure, err := c.criterion(ctx, s)
	if err != nil {
		return err
	}
	found, err := c.look(ctx, s)
	if err != nil {
		return err
	}
	matching := slices.DeleteFunc(slices.Clone(found.credentials), func(v byok.Credential) bool { return !matches(v) })
	others := slices.DeleteFunc(slices.Clone(found.credentials), func(v byok.Credential) bool { return matches(v) || !unsure(v) })
	if len(others) > 0 {
		s.note("%s with the label ... may contain the key: `admin credential find ...` lists them.", output.Count(len(others), "document"))
	}
	if len(matching) > 0 {
		return showCredentials(s, matching, true)
	}
	err = found.absent()
	if c.Text != "-" && errors.Is(err, byok.ErrNotFound) {
		err = fmt.Errorf("%w. In a label, upper and lower case differ", err)
	}
	return err
}

// lists reports whether the credential allows an API key whose hash begins with the text.
func lists(c byok.Credential, text string) bool {
	return len(text) >= 8 && slices.ContainsFunc(c.AllowedAPIKeyHashes, func(hash string) bool { return strings.HasPrefix(hash, text) })
}

// criterion returns two functions. The first reports whether a credential matches. The second
// reports whether the key may be in another one. If the text is a key, given by mistake, its
// label matches too.
func (c credentialFind) criterion(ctx context.Context, s *session) (matches, unsure func(byok.Credential) bool, err error) {
	unknown := byok.Label(nil)
	if c.Text != "-" {
		text, label := strings.ToLower(c.Text), byok.Label([]byte(c.Text))
		return func(v byok.Credential) bool {
			return strings.HasSuffix(v.Label, c.Text) || v.Provider == text || strings.HasPrefix(string(v.ID), text) ||
				strings.Contains(strings.ToLower(v.Name), text) || v.Label == label && label != unknown || lists(v, text)
		}, func(byok.Credential) bool { return false }, nil
	}
	text, err := s.leakedText(ctx)
	if err != nil {
		return nil, nil, err
	}
	labels := slices.DeleteFunc(each(possibleKeys(text), func(key string) string { return byok.Label([]byte(key)) }),
		func(label string) bool { return label == unknown })
	if len(labels) == 0 || byok.FormOf([]byte(text)) == byok.Document {
		s.warn("a short key or a document has the label ...: all credentials with this label are listed")
		labels = append(labels, unknown)
	}
	// The key may have been stored with something before or after it. Then no header can
	// carry it, and its label is "...".
	return func(v byok.Credential) bool { return slices.Contains(labels, v.Label) || v.Form == byok.NoHeader },
		func(v byok.Credential) bool { return v.Form == byok.Document }, nil
}

type credentialShow struct{ oneCredential }

// Run shows everything about a credential except its key.
func (c credentialShow) Run(ctx context.Context, s *session) error {
	found, err := c.find(ctx, s)
	if err != nil {
		return err
	}
	var settings []output.Column[credentialRow]
	for name, value := range found.ByName() {
		switch name {
		case "provider", "name", "disabled": // they have columns
		default:
			settings = append(settings, output.Column[credentialRow]{Title: name, Cell: func(credentialRow) string { return settingText(value) }})
		}
	}
	if found.Form == byok.NoHeader {
		s.warn("no header can carry the key: a router refuses every request for which its turn comes. Create it again without what was pasted around it")
	}
	return output.One(s.out, viewCredential(found), settings...)
}

// settingText returns a setting as text: the value behind a pointer, or - if there is none.
func settingText(setting any) string {
	if value := reflect.ValueOf(setting); value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return "-"
		}
		return settingText(value.Elem().Interface())
	}
	switch value := setting.(type) {
	case bool:
		return map[bool]string{true: "yes", false: "no"}[value]
	case []string:
		switch {
		case value == nil:
			return "any"
		case len(value) == 0:
			return "none"
		}
		return strings.Join(value, ", ")
	}
	return fmt.Sprint(setting)
}
