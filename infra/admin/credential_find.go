package main

import (
	"context"
	"errors"
	"fmt"
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

const everyAccount = "all accounts"

type looked struct {
	where       string // in words
	credentials []byok.Credential
	unread      int // rows or workspaces that cannot be read, and were left out
}

var errUnreadable = errors.New("some rows are unreadable")

// absent is the error if no credential matches. If unreadable ones were left out, it is
// errUnreadable and not ErrNotFound, because the credential may be one of them.
func (l looked) absent() error {
	if l.unread > 0 {
		advice := "`admin restore check` names them. To disable or delete one, give --workspace and the whole id"
		if l.where != everyAccount {
			advice += "; to find a readable one, search all accounts"
		}
		return fmt.Errorf("no readable credential in %s matches, but %w: %s", l.where, errUnreadable, advice)
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
		all, err := s.credentials.ListAll(ctx)
		if all.Unreadable > 0 {
			s.warn(output.Count(all.Unreadable, "row") + " of the credentials table cannot be read: `admin restore check` names them")
		}
		return looked{where: everyAccount, credentials: all.Credentials, unread: all.Unreadable}, err
	}
	for _, w := range workspaces {
		stored, err := s.credentials.List(ctx, w)
		if errors.Is(err, byok.ErrUnreadable) {
			found.unread++
			s.warn(fmt.Sprintf("workspace %s has a credential that cannot be read, which hides the others: `admin restore check` names it", w))
			continue
		}
		if err != nil {
			return looked{}, err
		}
		found.credentials = append(found.credentials, stored...)
	}
	return found, nil
}

type oneCredential struct {
	search
	ID arguments.CredentialPrefix `arg:"" name:"credential" help:"The credential's id, or a prefix of it that no other has (8 characters or more)."`
}

// findForChange also accepts a whole id that it did not find, if the workspace of --workspace
// has an unreadable row: damage must not prevent a revocation. The change itself returns
// ErrNotFound if there is no such credential.
func (c oneCredential) findForChange(ctx context.Context, s *session) (byok.Credential, error) {
	found, err := c.find(ctx, s)
	if id, whole := ids.Parse[ids.Credential](string(c.ID)); errors.Is(err, errUnreadable) && whole && c.Workspace != "" {
		return byok.Credential{ID: id, Account: c.Account, Workspace: c.Workspace}, nil
	}
	return found, err
}

func (c oneCredential) find(ctx context.Context, s *session) (byok.Credential, error) {
	found, err := c.look(ctx, s)
	if err != nil {
		return byok.Credential{}, err
	}
	matching := slices.DeleteFunc(found.credentials, func(v byok.Credential) bool { return !strings.HasPrefix(string(v.ID), string(c.ID)) })
	switch {
	case len(matching) == 1:
		return matching[0], nil
	case len(matching) > 1:
		return byok.Credential{}, exit.UsageError(fmt.Sprintf("several credential ids begin with this prefix, among them %s and %s: give more characters", matching[0].ID, matching[1].ID))
	}
	return byok.Credential{}, found.absent()
}

// credentialFind has no default account: a leaked key may be anybody's.
type credentialFind struct {
	Account   ids.Account   `placeholder:"ID" help:"Look in this account alone. Without it and --workspace: in all accounts, whatever SIGNALBOX_ACCOUNT is, which reads the whole credentials table."`
	Workspace ids.Workspace `placeholder:"ID" help:"Look in this workspace alone."`
	Text      string        `arg:"" help:"A label (sk-...AbCd), its last characters, a provider, a part of the name, or the beginning of an id or of an allowed API key's hash. 'odd', 'document', 'no header' or 'signalbox key' finds keys of that form. - reads a leaked key from standard input and searches by its label."`
}

func (c credentialFind) Run(ctx context.Context, s *session) error {
	matches, leaked := c.matches, c.Text == "-"
	if leaked {
		text, err := s.leakedText(ctx)
		if err != nil {
			return err
		}
		ends := keyEnds(text)
		matches = func(v byok.Credential) bool { return shows(v, ends) }
	}
	found, err := search{c.Account, c.Workspace}.look(ctx, s)
	if err != nil {
		return err
	}
	var matching []byok.Credential
	unsure := 0
	for _, v := range found.credentials {
		switch {
		case matches(v):
			matching = append(matching, v)
		case leaked && mayHide(v):
			unsure++
		}
	}
	others := output.Count(unsure, "credential") + " may contain the key, because a label shows too little of it: `admin credential find` lists them with '...' or 'odd'"
	switch {
	case len(matching) > 0:
		if label := byok.Label([]byte(c.Text)); leaked || slices.ContainsFunc(matching, func(v byok.Credential) bool { return v.Label == label }) {
			s.note("Found by its label: another key may have it. A key that was stored in base64 is not searched for.")
		}
		if unsure > 0 {
			s.note("Besides these, %s.", others)
		}
		typed := leaked || !slices.ContainsFunc(matching, func(v byok.Credential) bool { return !strings.HasSuffix(v.Label, c.Text) })
		return showCredentials(s, matching, everywhere(typed)...)
	case unsure > 0:
		return exit.Findings("no label shows the key, and `find -` searches by label, not in base64. " + others)
	case leaked && found.unread == 0:
		return fmt.Errorf("%w. `find -` searches by label, not in base64", found.absent())
	case found.unread > 0:
		return found.absent()
	}
	return fmt.Errorf("%w. In a label, upper and lower case differ", found.absent())
}

// matches reports whether the text describes a credential. If the text is a key, given by
// mistake, its label matches too.
func (c credentialFind) matches(v byok.Credential) bool {
	text, label := strings.ToLower(c.Text), byok.Label([]byte(c.Text))
	return strings.HasSuffix(v.Label, c.Text) || v.Provider == text || strings.HasPrefix(string(v.ID), text) || text == unusual(v) ||
		strings.Contains(folded(v.Name), folded(c.Text)) || v.Label == label && label != byok.Label(nil) || lists(v, text)
}

// shows reports whether one of the ends of keys is the end of the credential's label. Something may
// be stored before a key (openai:sk-…), and odd characters after it.
func shows(v byok.Credential, ends []string) bool {
	_, end, _ := strings.Cut(v.Label, byok.Label(nil))
	end = strings.TrimRight(end, byok.OddCharacters)
	return end != "" && slices.ContainsFunc(ends, func(key string) bool { return strings.HasSuffix(key, end) })
}

// mayHide reports whether the label of the credential may show too little of its key.
func mayHide(v byok.Credential) bool { return v.Form != byok.Header || v.Label == byok.Label(nil) }

// lists reports whether the credential allows an API key whose hash begins with the text.
func lists(c byok.Credential, text string) bool {
	return len(text) >= 8 && slices.ContainsFunc(c.AllowedAPIKeyHashes, func(hash ids.KeyHash) bool { return strings.HasPrefix(string(hash), text) })
}

type credentialShow struct{ oneCredential }

func (c credentialShow) Run(ctx context.Context, s *session) error {
	found, err := c.find(ctx, s)
	if err != nil {
		return err
	}
	var settings []output.Line
	for name, value := range found.ByName() {
		switch name {
		case "provider", "name", "disabled": // they have columns
		default:
			settings = append(settings, output.Line{Title: name, Text: settingText(value)})
		}
	}
	switch found.Form {
	case byok.NoHeader:
		s.warn("no header can carry the key: a router refuses every request for which its turn comes. Create it again without what was pasted around it")
	case byok.Odd:
		s.warn("the key has a blank, a quote or another character that few providers use, or begins like NAME=. If that was pasted with it, the provider refuses it: create it again")
	case byok.SignalboxKey:
		s.warn("the key is an API key of this service, by its label: routers refuse to send it. Disable that API key, delete the credential, and create it again with the provider's key")
	case byok.Header, byok.Document:
	}
	return output.One(s.out, viewCredential(found), settings...)
}

func settingText(setting any) string {
	switch value := setting.(type) {
	case bool:
		return map[bool]string{true: "yes", false: "no"}[value]
	case []string:
		return listText(value)
	case []ids.KeyHash:
		return listText(value)
	}
	return fmt.Sprint(setting)
}

func listText[T ~string](list []T) string {
	switch {
	case list == nil:
		return "any"
	case len(list) == 0:
		return "none"
	}
	return strings.Join(each(list, func(element T) string { return string(element) }), ", ")
}
