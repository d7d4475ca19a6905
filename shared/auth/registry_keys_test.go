package auth_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

func TestKeysAreListed(t *testing.T) {
	a := newAccess(t)
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	a.registry.SetClock(now)
	first := a.bound(a.workspace)
	a.registry.SetClock(now.Add(time.Second))
	second := a.key(auth.NewKey{Kind: auth.Management, ExpiresAt: now.Add(time.Hour)})
	if err := a.registry.DisableKey(t.Context(), a.account, second.Hash); err != nil {
		t.Fatal(err)
	}
	got, err := a.registry.ListKeys(t.Context(), a.account)
	if err != nil {
		t.Fatal(err)
	}
	want := []auth.Key{
		{Hash: first.Hash, Workspace: a.workspace, Kind: auth.Standard, Name: "test", CreatedAt: now},
		{
			Hash: second.Hash, Kind: auth.Management, Name: "test", Disabled: true,
			CreatedAt: now.Add(time.Second), ExpiresAt: now.Add(time.Hour),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestMoreKeysAreListedThanOneBatchHolds(t *testing.T) {
	a := newAccess(t)
	for range 101 {
		a.standard()
	}
	got, err := a.registry.ListKeys(t.Context(), a.account)
	if err != nil || len(got) != 101 {
		t.Errorf("%d keys, %v; want 101", len(got), err)
	}
}

func TestKeysOfAWrongShapeAreRefused(t *testing.T) {
	a := newAccess(t)
	for name, n := range map[string]auth.NewKey{
		"no kind":          {Name: "k"},
		"unknown kind":     {Name: "k", Kind: "root"},
		"bound management": {Name: "k", Kind: auth.Management, Workspace: a.workspace},
	} {
		t.Run(name, func(*testing.T) {
			n.Account = a.account
			_, _, err := a.registry.CreateKey(t.Context(), n)
			a.wantError(err, auth.ErrInvalid)
		})
	}
}

func TestAKeyIsBoundToALiveWorkspaceOfItsAccount(t *testing.T) {
	a, other := newAccess(t), newAccess(t)
	if err := a.registry.DeleteWorkspace(t.Context(), a.account, a.workspace); err != nil {
		t.Fatal(err)
	}
	for want, workspace := range map[error]ids.Workspace{
		auth.ErrNoWorkspace:      other.workspace,
		auth.ErrWorkspaceDeleted: a.workspace,
	} {
		_, _, err := a.registry.CreateKey(t.Context(), auth.NewKey{
			Account: a.account, Workspace: workspace, Kind: auth.Standard, Name: "k",
		})
		a.wantError(err, want)
	}
}

func TestAKeyExpires(t *testing.T) {
	a := newAccess(t)
	end := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	key := a.key(auth.NewKey{Kind: auth.Standard, ExpiresAt: end})
	verifier := auth.NewVerifier(a.db, a.table)
	verifier.SetClock(end.Add(-time.Nanosecond))
	if _, err := verifier.Verify(t.Context(), key.Hash); err != nil {
		t.Errorf("before its end: %v", err)
	}
	verifier.SetClock(end)
	if _, err := verifier.Verify(t.Context(), key.Hash); err == nil {
		t.Error("let in at its end")
	}
}

func TestAKeyIsDisabledEnabledAndDeleted(t *testing.T) {
	a, other := newAccess(t), newAccess(t)
	for name, key := range map[string]auth.Key{"bound": a.bound(a.workspace), "unbound": a.standard()} {
		t.Run(name, func(t *testing.T) {
			ctx, was := t.Context(), a.reason
			for range 2 { // twice is as good as once
				if err := a.registry.DisableKey(ctx, a.account, key.Hash); err != nil || was(key) != auth.Disabled {
					t.Errorf("disabling: %v, let in: %q", err, was(key))
				}
			}
			for range 2 {
				if err := a.registry.EnableKey(ctx, a.account, key.Hash); err != nil || was(key) != "" {
					t.Errorf("enabling: %v, let in: %q", err, was(key))
				}
			}
			a.wantError(a.registry.DisableKey(ctx, other.account, key.Hash), auth.ErrNoKey)
			a.wantError(a.registry.EnableKey(ctx, other.account, key.Hash), auth.ErrNoKey)
			a.wantError(a.registry.DeleteKey(ctx, other.account, key.Hash), auth.ErrNoKey)
			if err := a.registry.DeleteKey(ctx, a.account, key.Hash); err != nil || was(key) != auth.UnknownKey {
				t.Errorf("deleting: %v, let in: %q", err, was(key))
			}
			a.wantError(a.registry.DisableKey(ctx, a.account, key.Hash), auth.ErrNoKey)
			a.wantError(a.registry.EnableKey(ctx, a.account, key.Hash), auth.ErrNoKey)
			a.wantError(a.registry.DeleteKey(ctx, a.account, key.Hash), auth.ErrNoKey)
		})
	}
	if left := a.entries(); len(left) != 0 {
		t.Errorf("left in lists: %v", left)
	}
}
