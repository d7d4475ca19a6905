package main

import (
	"context"
	"errors"

	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// place looks up, side by side, all that storage decides about a request that is
// valid by itself: whether the allow-listed keys and the workspace are the
// account's, and which position the credential gets; and seals the key meanwhile.
// Nothing that it leaves matters: a position may stay unused.
func (h handler) place(ctx context.Context, caller auth.Caller, workspace ids.Workspace, n byok.New) (byok.Draft, error) {
	account, hashes := caller.Account(), keyHashes(n.AllowedAPIKeyHashes)
	var placeErr error
	if workspace == "" {
		workspace, placeErr = h.workspaces.Default(ctx, caller)
		if placeErr != nil && !isNoWorkspace(placeErr) {
			return byok.Draft{}, placeErr
		}
	}
	var (
		owned             map[auth.KeyHash]bool
		draft             byok.Draft
		position          int64
		ownedErr, sealErr error
	)
	steps := []func(context.Context){
		func(ctx context.Context) { owned, ownedErr = h.keyring.Owned(ctx, account, hashes) },
	}
	if placeErr == nil {
		steps = append(steps,
			func(ctx context.Context) { draft, sealErr = h.credentials.Seal(ctx, account, workspace, n) },
			func(ctx context.Context) {
				position, placeErr = h.positions.Claim(ctx, account, workspace, n.Provider)
			},
		)
	}
	calls.Together(ctx, steps...)
	draft.SortOrder = position

	// A request that can never succeed gets a 400, whatever else failed.
	var issues []api.Issue
	if ownedErr == nil {
		issues = foreignKeys(hashes, owned)
	}
	if isNoWorkspace(placeErr) {
		issues = append(issues, api.Issue{Path: "/workspace_id", Message: "must be a live workspace of the account; where it is omitted, the account must have a default workspace"})
	}
	if len(issues) > 0 {
		return byok.Draft{}, api.Invalid(issues)
	}
	for _, err := range []error{ownedErr, placeErr, sealErr} {
		if err != nil {
			return byok.Draft{}, err
		}
	}
	return draft, nil
}

// isNoWorkspace reports the one expected error of the workspace's look-ups.
func isNoWorkspace(err error) bool { return errors.Is(err, auth.ErrNoWorkspace) }

func keyHashes(hashes []string) []auth.KeyHash {
	var list []auth.KeyHash
	for _, h := range hashes {
		list = append(list, auth.KeyHash(h))
	}
	return list
}

// foreignKeys reports the hashes that name no key of the account, all with one
// text: it does not reveal which of them belong to another account.
func foreignKeys(hashes []auth.KeyHash, owned map[auth.KeyHash]bool) []api.Issue {
	var issues []api.Issue
	for i, h := range hashes {
		if !owned[h] {
			issues = append(issues, api.Issue{
				Path:    api.Element("allowed_api_key_hashes", i),
				Message: "must be the hash of an API key of the account",
			})
		}
	}
	return issues
}
