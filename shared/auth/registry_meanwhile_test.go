package auth_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// meanwhile lets another command run when the first call of the operation is on
// its way to the table.
func (a *access) meanwhile(operation string, command func(*auth.Registry) error) {
	a.Helper()
	other := auth.NewRegistry(dynamodb.NewFromConfig(testkit.Start(a.T).Config), a.table)
	a.faults.Heal()
	a.faults.Inject(faults.Rule{Operation: operation, Call: 1, Fault: func(_ *http.Request, apply func() (*http.Response, error)) (*http.Response, error) {
		if err := command(other); err != nil {
			a.Error(err)
		}
		return apply()
	}})
}

func TestAKeyThatIsDeletedMeanwhileStaysDeleted(t *testing.T) {
	a := newAccess(t)
	for name, command := range map[string]func(auth.KeyHash) error{
		"enabling": func(h auth.KeyHash) error { return a.registry.EnableKey(t.Context(), a.account, h) },
		"deleting": func(h auth.KeyHash) error { return a.registry.DeleteKey(t.Context(), a.account, h) },
	} {
		for _, key := range []auth.Key{a.bound(a.workspace), a.standard()} {
			a.meanwhile("TransactWriteItems", func(r *auth.Registry) error { return r.DeleteKey(t.Context(), a.account, key.Hash) })
			a.wantError(command(key.Hash), auth.ErrNoKey)
			if got := a.reason(key); got != auth.UnknownKey {
				t.Errorf("%s: let in: %q", name, got)
			}
		}
	}
}

func TestAWorkspaceIsDeletedThoughAKeyGoesMeanwhile(t *testing.T) {
	a := newAccess(t)
	gone, left := a.bound(a.workspace), a.bound(a.workspace)
	a.meanwhile("UpdateItem", func(r *auth.Registry) error { return r.DeleteKey(t.Context(), a.account, gone.Hash) })
	if err := a.registry.DeleteWorkspace(t.Context(), a.account, a.workspace); err != nil {
		t.Error(err)
	}
	if got := a.reason(left); got != auth.Disabled {
		t.Errorf("the other key: %q", got)
	}
}

func TestTheDefaultChangesWhileAWorkspaceIsDeleted(t *testing.T) {
	for name, choose := range map[string]func(first, second ids.Workspace) (deleted, want ids.Workspace){
		"it becomes the default": func(_, second ids.Workspace) (deleted, want ids.Workspace) { return second, "" },
		"another becomes it":     func(first, second ids.Workspace) (deleted, want ids.Workspace) { return first, second },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccess(t)
			second, err := a.registry.CreateWorkspace(t.Context(), a.account, "second")
			if err != nil {
				t.Fatal(err)
			}
			deleted, want := choose(a.workspace, second)
			a.meanwhile("TransactWriteItems", func(r *auth.Registry) error { return r.SetDefaultWorkspace(t.Context(), a.account, second) })
			if err := a.registry.DeleteWorkspace(t.Context(), a.account, deleted); err != nil {
				t.Fatal(err)
			}
			got := map[ids.Workspace][2]bool{} // default, deleted
			all, err := a.registry.ListWorkspaces(t.Context(), a.account)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range all {
				got[w.ID] = [2]bool{w.Default, !w.DeletedAt.IsZero()}
			}
			expected := map[ids.Workspace][2]bool{
				a.workspace: {a.workspace == want, a.workspace == deleted}, second: {second == want, second == deleted},
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("default and deleted (-want +got):\n%s", diff)
			}
		})
	}
}
