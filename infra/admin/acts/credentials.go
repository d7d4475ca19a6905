package acts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// everyAccount is the place of a search that names no account.
const everyAccount = "all accounts"

// Looked is the result of a search for credentials.
type Looked struct {
	Where       string // in words
	Credentials []byok.Credential
	Damaged     int // rows, or workspaces with one, that were left out
}

// Absent is the error if no credential matches. If damaged ones were left out, it is
// calls.ErrDamaged and not ErrNotFound, because the credential may be one of them.
func (l Looked) Absent() error {
	if l.Damaged > 0 {
		advice := "to disable or delete a damaged credential, give --workspace and the whole id"
		if l.Where != everyAccount {
			advice += "; to find another, search all accounts"
		}
		return fmt.Errorf("no other credential in %s matches: %w; %s", l.Where, calls.ErrDamaged, advice)
	}
	return fmt.Errorf("%w: looked in %s, at %s", byok.ErrNotFound, l.Where, Count(len(l.Credentials), "credential"))
}

// Look reads no row of an account or workspace, because a damaged one must not prevent a
// revocation.
func (s *Stack) Look(ctx context.Context, account ids.Account, workspace ids.Workspace) (Looked, error) {
	workspaces, found := []ids.Workspace{workspace}, Looked{Where: "workspace " + string(workspace)}
	switch {
	case account != "":
		listed, err := s.Registry.ListWorkspaceIDs(ctx, account)
		if err != nil {
			return Looked{}, err
		}
		if workspace == "" {
			workspaces, found.Where = listed, fmt.Sprintf("the %s of account %s", Count(len(listed), "workspace"), account)
		} else if !slices.Contains(listed, workspace) {
			return Looked{}, auth.ErrNoWorkspace
		}
	case workspace == "":
		all, err := s.Credentials.ListAll(ctx)
		if all.Damaged > 0 {
			s.Warn(Count(all.Damaged, "damaged row") + " of the credentials table: `admin restore check` names each")
		}
		return Looked{Where: everyAccount, Credentials: all.Credentials, Damaged: all.Damaged}, err
	}
	for _, w := range workspaces {
		stored, err := s.Credentials.List(ctx, w)
		if errors.Is(err, calls.ErrDamaged) {
			found.Damaged++
			s.Warn(fmt.Sprintf("workspace %s has a damaged credential, which hides the others: `admin restore check` names it", w))
			continue
		}
		if err != nil {
			return Looked{}, err
		}
		found.Credentials = append(found.Credentials, stored...)
	}
	return found, nil
}

// RefusedByRouters returns the workspaces that a router refuses because their credentials take
// too much; stored are all credentials. It asks only about workspaces with many. If an answer is
// missing, it warns.
func (s *Stack) RefusedByRouters(ctx context.Context, stored []byok.Credential) (refused []ids.Workspace) {
	holding := map[ids.Workspace]int{}
	for _, c := range stored {
		holding[c.Workspace]++
	}
	for w, credentials := range Sorted(holding) {
		if credentials <= byok.AlwaysReadable {
			continue
		}
		switch err := s.Credentials.CheckSize(ctx, w); {
		case errors.Is(err, byok.ErrTooMany):
			refused = append(refused, w)
		case err != nil:
			s.Warn(fmt.Sprintf("it is not known whether routers refuse workspace %s: %s", w, ErrorText(err, true)))
		}
	}
	return refused
}
