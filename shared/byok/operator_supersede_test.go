package byok_test

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// pair stores two credentials, at places 3 and 8.
func (f *fixture) pair(change func(*byok.Draft)) (old, successor ids.Credential) {
	f.Helper()
	first, second := f.newDraft(), f.newDraft()
	first.SortOrder, second.SortOrder = 3, 8
	change(&second)
	for _, d := range []byok.Draft{first, second} {
		kit.Must(f, f.store.Create(f.Context(), d))
	}
	return first.ID, second.ID
}

// places are the places of the stored credentials.
func (f *fixture) places() map[ids.Credential]string {
	f.Helper()
	places := map[ids.Credential]string{}
	for _, c := range f.stored() {
		place := map[int64]string{3: "first", 8: "second"}[c.SortOrder]
		if c.Disabled {
			place += ", disabled"
		}
		places[c.ID] = place
	}
	return places
}

func TestSupersede(t *testing.T) {
	unchanged := func(*byok.Draft) {}
	for name, c := range map[string]struct {
		change func(*byok.Draft)
		want   error
	}{
		"alike":                   {unchanged, nil},
		"another name":            {func(d *byok.Draft) { d.Name = "other" }, nil},
		"another flag":            {func(d *byok.Draft) { d.Required = true }, byok.ErrOtherSettings},
		"no list":                 {func(d *byok.Draft) { d.AllowedModels = nil }, byok.ErrOtherSettings},
		"a list in another order": {func(d *byok.Draft) { d.AllowedUserIDs = []string{"u2", "u1", "u2"} }, nil},
		"another list":            {func(d *byok.Draft) { d.AllowedUserIDs = []string{"u1"} }, byok.ErrOtherSettings},
		"disabled":                {func(d *byok.Draft) { d.Disabled = true }, byok.ErrSuccessorDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			old, successor := f.pair(c.change)
			before := f.places()
			want := map[ids.Credential]string{successor: "first", old: "second, disabled"}
			if c.want != nil {
				want = before
			}
			for _, first := range []bool{true, false} { // the second time changes nothing
				if changed, err := f.manager.Supersede(t.Context(), f.workspace, old, successor); !errors.Is(err, c.want) || changed != (c.want == nil && first) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if got := f.places(); got[old] != want[old] || got[successor] != want[successor] {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
}

// If the successor came first from the beginning, a repeat must not move it back.
func TestASuccessorThatComesFirstStays(t *testing.T) {
	f := newFixture(t)
	successor, old := f.pair(func(*byok.Draft) {})
	for _, first := range []bool{true, false} {
		changed, err := f.manager.Supersede(t.Context(), f.workspace, old, successor)
		if got := f.places(); err != nil || changed != first || got[successor] != "first" || got[old] != "second, disabled" {
			t.Errorf("changed: %v, %v; got %v", changed, err, got)
		}
	}
}

func TestSupersedeRefuses(t *testing.T) {
	f := newFixture(t)
	old, successor := f.pair(func(*byok.Draft) {})
	for _, pair := range [][2]ids.Credential{{old, ids.New[ids.Credential]()}, {ids.New[ids.Credential](), successor}} {
		if _, err := f.manager.Supersede(t.Context(), f.workspace, pair[0], pair[1]); !errors.Is(err, byok.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := f.manager.Supersede(t.Context(), f.workspace, old, old); !errors.Is(err, byok.ErrSameCredential) {
		t.Errorf("by itself: %v", err)
	}
	_, other := f.pair(func(d *byok.Draft) { d.Provider = "mistral" })
	if _, err := f.manager.Supersede(t.Context(), f.workspace, old, other); !errors.Is(err, byok.ErrOtherProvider) {
		t.Errorf("of another provider: %v", err)
	}
}

// slowTable holds two credentials. It sends a reader's page after a delay. The page
// lacks the successor.
type slowTable struct {
	*dynamodb.Client
	successor, old kit.Row // in the order of their ids
	delay          time.Duration
	swapped        *atomic.Bool
}

func (p slowTable) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if in.ProjectionExpression != nil { // the manager's list
		return &dynamodb.QueryOutput{Items: []kit.Row{p.successor, p.old}}, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(p.delay):
		old := maps.Clone(p.old)
		old["disabled"] = &types.AttributeValueMemberBOOL{Value: p.swapped.Load()}
		return &dynamodb.QueryOutput{Items: []kit.Row{old}}, nil
	}
}

func (p slowTable) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	p.swapped.Store(true)
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// If a reading began before the successor was stored, it fails or sees the old
// credential as usable.
func TestAReadingThatMissedTheSuccessor(t *testing.T) {
	for _, delay := range []time.Duration{byok.ReadTime / 2, byok.ReadTime - 1, byok.ReadTime + 1, time.Hour} {
		f := newFixture(t)
		old, successor := f.pair(func(*byok.Draft) {})
		rows := kit.Rows{DB: f.db, Table: f.env.Tables.Credentials}
		row := func(id ids.Credential) kit.Row {
			return rows.Get(t, kit.Key("workspace#"+string(f.workspace), "credential#"+string(id)))
		}
		table := slowTable{successor: row(successor), old: row(old), delay: delay, swapped: new(atomic.Bool)}
		synctest.Test(t, func(t *testing.T) {
			read := make(chan struct{})
			go func() {
				defer close(read)
				all, err := byok.ReadAll(t.Context(), table, "t", f.account, f.workspace)
				if err == nil && (len(all) != 1 || all[0].Disabled) {
					t.Errorf("a page after %v: read %+v", delay, all)
				}
				if (err == nil) != (delay < byok.ReadTime) {
					t.Errorf("a page after %v: %v", delay, err)
				}
			}()
			synctest.Wait()
			if changed, err := byok.NewManager(table, "t").Supersede(t.Context(), f.workspace, old, successor); !changed || err != nil {
				t.Errorf("%v, %v", changed, err)
			}
			<-read
		})
	}
}
