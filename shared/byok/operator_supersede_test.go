package byok_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// pair stores two credentials, with sort_order 3 and 8.
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

// order is each credential's sort_order, and whether it is disabled.
func (f *fixture) order() map[ids.Credential]string {
	f.Helper()
	order := map[ids.Credential]string{}
	for _, c := range f.rows() {
		order[c.ID] = fmt.Sprint(c.SortOrder, " ", c.Disabled)
	}
	return order
}

func hurried(context.Context, time.Duration) error { return nil } // no reader is waited for

// supersede.txt, of the operator's command, has plain refusals.
func TestSupersede(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*byok.Draft)
		want     error
		from, to string
	}{
		"first already":           {func(d *byok.Draft) { d.SortOrder = 1 }, nil, "3 true", "1 false"},
		"another name":            {func(d *byok.Draft) { d.Name = "other" }, nil, "8 true", "3 false"},
		"a list in another order": {func(d *byok.Draft) { d.AllowedUserIDs = []string{"u2", "u1", "u2"} }, nil, "8 true", "3 false"},
		"no list":                 {func(d *byok.Draft) { d.AllowedModels = nil }, byok.ErrOtherSettings, "3 false", "8 false"},
		"another list":            {func(d *byok.Draft) { d.AllowedUserIDs = []string{"u1"} }, byok.ErrOtherSettings, "3 false", "8 false"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			old, successor := f.pair(c.change)
			for _, first := range []bool{true, false} { // the second time changes nothing
				if changed, err := f.manager.Supersede(t.Context(), hurried, f.workspace, old, successor); !errors.Is(err, c.want) || changed != (c.want == nil && first) {
					t.Errorf("changed: %t, %v, want %v", changed, err, c.want)
				}
				if diff := cmp.Diff(map[ids.Credential]string{old: c.from, successor: c.to}, f.order()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
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
		old["disabled"] = kit.Bool(p.swapped.Load())
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
			if changed, err := byok.NewManager(table, "t").Supersede(t.Context(), calls.Wait, f.workspace, old, successor); !changed || err != nil {
				t.Errorf("%v, %v", changed, err)
			}
			<-read
		})
	}
}
