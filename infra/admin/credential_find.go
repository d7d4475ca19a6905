package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// search defines the workspaces in which a command looks for credentials.
type search struct {
	Account   ids.Account   `env:"SIGNALBOX_ACCOUNT" placeholder:"ID" help:"Look in this account alone. Without it and --workspace: in all accounts, which reads the whole credentials table."`
	Workspace ids.Workspace `placeholder:"ID" help:"Look in this workspace alone."`
}

type oneCredential struct {
	search
	ID arguments.CredentialPrefix `arg:"" name:"credential" help:"The credential's id, or a prefix of it that no other has (8 characters or more)."`
}

type manyCredentials struct {
	search
	IDs []arguments.CredentialPrefix `arg:"" name:"credential" help:"The credentials' ids, or prefixes that no other has (8 characters or more)."`
}

// findForChange also accepts a whole id that it did not find, if the workspace of --workspace
// has a damaged row: that must not prevent a revocation. The change itself returns
// ErrNotFound if there is no such credential.
func (c oneCredential) findForChange(ctx context.Context, s *session) (byok.Credential, error) {
	found, err := c.find(ctx, s)
	if id, whole := ids.Parse[ids.Credential](string(c.ID)); errors.Is(err, calls.ErrDamaged) && whole && c.Workspace != "" {
		return byok.Credential{ID: id, Account: c.Account, Workspace: c.Workspace}, nil
	}
	return found, err
}

func (c oneCredential) find(ctx context.Context, s *session) (byok.Credential, error) {
	found, err := s.Look(ctx, c.Account, c.Workspace)
	if err != nil {
		return byok.Credential{}, err
	}
	matching := slices.DeleteFunc(found.Credentials, func(v byok.Credential) bool { return !strings.HasPrefix(string(v.ID), string(c.ID)) })
	switch {
	case len(matching) == 1:
		return matching[0], nil
	case len(matching) > 1:
		return byok.Credential{}, acts.UsageError(fmt.Sprintf("several credential ids begin with this prefix, among them %s and %s: give more characters", matching[0].ID, matching[1].ID))
	}
	return byok.Credential{}, found.Absent()
}

// credentialFind has no default account: a leaked key may be anybody's.
type credentialFind struct {
	Account   ids.Account   `placeholder:"ID" help:"Look in this account alone. Without it and --workspace: in all accounts, whatever SIGNALBOX_ACCOUNT is, which reads the whole credentials table."`
	Workspace ids.Workspace `placeholder:"ID" help:"Look in this workspace alone."`
	Text      string        `arg:"" help:"A label (sk-...AbCd), its last characters, a provider, a part of the name, or the beginning of an id or of an allowed API key's hash. 'odd', 'document', 'no header' or 'signalbox key' finds keys of that form. - reads a leaked key from standard input and searches by its label."`
}

// everywhere are the titles of a list of several workspaces.
var everywhere = []string{"id", "name", "provider", "state", "workspace", "account", "age", "label", "order", "flags", "only for"}

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
	found, err := s.Look(ctx, c.Account, c.Workspace)
	if err != nil {
		return err
	}
	var matching []byok.Credential
	unsure := 0
	for _, v := range found.Credentials {
		switch {
		case matches(v):
			matching = append(matching, v)
		case leaked && mayHide(v):
			unsure++
		}
	}
	others := acts.Count(unsure, "credential") + " may contain the key, because a label shows too little of it: `admin credential find` lists them with '...' or 'odd'"
	switch {
	case len(matching) > 0:
		if label := byok.Label([]byte(c.Text)); leaked || slices.ContainsFunc(matching, func(v byok.Credential) bool { return v.Label == label }) {
			s.Note("Found by its label: another key may have it. A key that was stored in base64 is not searched for.")
		}
		if unsure > 0 {
			s.Note("Besides these, %s.", others)
		}
		return showCredentials(s, matching, everywhere...)
	case unsure > 0:
		return acts.Findings("no label shows the key, and `find -` searches by label, not in base64. " + others)
	case leaked && found.Damaged == 0:
		return fmt.Errorf("%w. `find -` searches by label, not in base64", found.Absent())
	case found.Damaged > 0:
		return found.Absent()
	}
	return fmt.Errorf("%w. In a label, upper and lower case differ", found.Absent())
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

// lists reports whether the credential allows an API key with a hash that begins with the text.
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
		s.Warn("no header can carry the key: a router refuses every request for which its turn comes. Create it again without what was pasted around it")
	case byok.Odd:
		s.Warn("the key has a blank, a quote or another character that few providers use, or begins like NAME=. If that was pasted with it, the provider refuses it: create it again")
	case byok.SignalboxKey:
		s.Warn("the key may be an API key of this service, by its label: routers refuse to send one. If it is, disable that API key, delete the credential, and create it again with the provider's key")
	case byok.Header, byok.Document:
	}
	return output.One(s.out, viewCredential(found), settings...)
}

func settingText(setting any) string {
	switch value := setting.(type) {
	case bool:
		if value {
			return "yes"
		}
		return "no"
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
