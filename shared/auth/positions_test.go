package auth_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

func (f *fixture) newPositions() *auth.Positions {
	return auth.NewPositions(f.db, f.table, 100, 700)
}

// next takes a position for a credential of 10 bytes.
func (f *fixture) next(p *auth.Positions, account ids.Account) (int64, error) {
	position, err := p.Next(f.Context(), account, f.workspace, "openai", 10)
	return position.SortOrder, err
}

// Each provider has positions of its own. All of them together count for the workspace, and
// what is not known counts as the largest room.
func TestPositions(t *testing.T) {
	f := newFixture(t)
	positions := f.newPositions()
	next := func(provider string, bytes int64, want auth.Position) {
		t.Helper()
		got, err := positions.Next(t.Context(), f.account, f.workspace, provider, bytes)
		if err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	next("openai", 20, auth.Position{SortOrder: 0, Credentials: 1, Bytes: 20})
	next("z-ai", 30, auth.Position{SortOrder: 0, Credentials: 2, Bytes: 50})
	next("openai", 5, auth.Position{SortOrder: 1, Credentials: 3, Bytes: 55})
	f.rows.Change(t, f.workspaceRow(), func(row kit.Row) { delete(row, "made") })
	next("openai", 5, auth.Position{SortOrder: 2, Credentials: 101, Bytes: 60})
	f.rows.Change(t, f.workspaceRow(), func(row kit.Row) { delete(row, "made_bytes") })
	next("openai", 5, auth.Position{SortOrder: 3, Credentials: 102, Bytes: 705})
	f.wantError(f.registry.RaiseCounter(t.Context(), f.workspace, "openai", 9), nil)
	next("openai", 5, auth.Position{SortOrder: 9, Credentials: 101, Bytes: 705})
	f.wantError(f.registry.RaiseCounter(t.Context(), f.workspace, "openai", 10), nil) // it is high enough
	next("openai", 5, auth.Position{SortOrder: 10, Credentials: 102, Bytes: 710})
}

// A damaged workspace gives out no position, and its account gets an error.
func TestNoPosition(t *testing.T) {
	f := newFixture(t)
	positions, sound := f.newPositions(), f.rows.Get(t, f.workspaceRow())
	for name, damage := range map[string]func(kit.Row){
		"made is text":      func(row kit.Row) { row["made"] = kit.Text("many") },
		"no counters":       func(row kit.Row) { delete(row, "next") },
		"counters are text": func(row kit.Row) { row["next"] = kit.Text("many") },
		"a counter is text": func(row kit.Row) {
			row["next"] = &types.AttributeValueMemberM{Value: kit.Row{"openai": kit.Text("many")}}
		},
	} {
		f.rows.Put(t, sound)
		f.rows.Change(t, f.workspaceRow(), damage)
		if _, err := f.next(positions, f.account); !errors.Is(err, calls.ErrDamaged) || !strings.HasPrefix(err.Error(), "stored workspace "+string(f.workspace)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
