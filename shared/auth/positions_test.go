package auth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// claims makes claims in a workspace. A test sets the room that stored credentials take.
type claims struct {
	*fixture
	*auth.Positions
	stored auth.Room
	counts atomic.Int64
	during func() // each count
}

func newClaims(t *testing.T) *claims {
	t.Helper()
	c := &claims{fixture: newFixture(t), during: func() {}}
	c.Positions = auth.NewPositions(c.db, c.table, func(context.Context, ids.Workspace) (credentials, bytes int64, err error) {
		c.counts.Add(1)
		c.during()
		return c.stored.Credentials, c.stored.Bytes, nil
	})
	return c
}

// newPositions counts nothing.
func (f *fixture) newPositions() *auth.Positions {
	return auth.NewPositions(f.db, f.table, func(context.Context, ids.Workspace) (credentials, bytes int64, err error) { return 0, 0, nil })
}

// claim claims a place for a small credential in a workspace with much room.
func (f *fixture) claim(p *auth.Positions, account ids.Account) (int64, error) {
	claim, err := p.Claim(f.Context(), account, f.workspace, auth.Need{Provider: "openai", Bytes: 1}, auth.Room{Credentials: 1000, Bytes: 1000})
	return claim.Position, err
}

// want claims so many bytes. The workspace has room for two credentials and 100 bytes.
func (c *claims) want(bytes int64, wanted error, counts int64) {
	c.Helper()
	_, err := c.Claim(c.Context(), c.account, c.workspace, auth.Need{Provider: "openai", Bytes: bytes}, auth.Room{Credentials: 2, Bytes: 100})
	if n := c.counts.Swap(0); !errors.Is(err, wanted) || n != counts {
		c.Errorf("claimed: %v, after %d counts; want %v, after %d", err, n, wanted, counts)
	}
}

// only claims the one place of the workspace.
func (c *claims) only(request string) (auth.Claim, error) {
	return c.Claim(c.Context(), c.account, c.workspace, auth.Need{Provider: "openai", Bytes: 1, Request: request}, auth.Room{Credentials: 1, Bytes: 100})
}

func inAnHour() time.Time { return time.Now().Add(time.Hour) }

// A claim that was not stored takes up room for a minute, and a full workspace is
// counted once a minute. A deletion by the operator ends the pause after a count, not the
// pause after a claim: the claim's credential may be stored later.
func TestAFullWorkspaceIsCounted(t *testing.T) {
	for name, bytes := range map[string]int64{"credentials": 1, "bytes": 50} {
		c, now := newClaims(t), time.Now()
		at := func(since time.Duration) { c.SetClock(func() time.Time { return now.Add(since) }) }
		c.Log("full of " + name)
		at(0)
		c.want(bytes, nil, 0)
		c.want(bytes, nil, 0)
		c.want(101, auth.ErrFull, 0)
		at(59 * time.Second)
		c.wantError(c.registry.MakeRoom(t.Context(), c.workspace), nil)
		c.want(bytes, auth.ErrFull, 0)

		at(61 * time.Second) // one of the two was stored
		c.stored = auth.Room{Credentials: 1, Bytes: bytes}
		c.want(bytes, nil, 1)
		c.want(bytes, auth.ErrFull, 0)

		at(122 * time.Second) // both are stored
		c.stored = auth.Room{Credentials: 2, Bytes: 2 * bytes}
		c.want(bytes, auth.ErrFull, 1)
		c.stored = auth.Room{} // and deleted
		at(123 * time.Second)
		c.want(bytes, auth.ErrFull, 0)
		c.wantError(c.registry.MakeRoom(t.Context(), c.workspace), nil)
		c.want(bytes, nil, 1)
		c.want(bytes, nil, 0)
	}
}

// A workspace without a count, as after a restore, is counted at its first claim.
func TestAWorkspaceWithoutACountIsCounted(t *testing.T) {
	c := newClaims(t)
	for name, forget := range map[string]func(){
		"used":    func() { c.rows.Change(t, c.workspaceRow(), func(row testkit.Row) { delete(row, "used") }) },
		"bytes":   func() { c.rows.Change(t, c.workspaceRow(), func(row testkit.Row) { delete(row, "bytes") }) },
		"restore": func() { c.wantError(c.registry.RaiseCounter(t.Context(), c.workspace, "anthropic", 7), nil) },
	} {
		t.Log(name)
		forget()
		c.stored = auth.Room{Credentials: 1, Bytes: 1}
		c.want(1, nil, 1)
		c.want(1, auth.ErrFull, 0)
	}
}

// Claims during a count do not let in more than the room allows.
func TestAClaimDuringACount(t *testing.T) {
	c := newClaims(t) // 90 bytes do not fit; one of 10 is claimed during the count
	c.want(20, nil, 0)
	c.SetClock(inAnHour)
	c.during = func() { c.during = func() {}; c.want(10, nil, 1) }
	c.want(90, auth.ErrFull, 0)
	c.want(1, auth.ErrFull, 0) // the count of 0 did not erase that claim
}

// Only one copy of a request is stored, so the copies share the last place for 45 seconds.
// Repeats after 1, 2, 4, 8 and 16 seconds still get it. They do not renew its claim: after
// a minute the next request counts.
func TestCopiesOfARequestShareAPlace(t *testing.T) {
	c, now := newClaims(t), time.Now()
	claim := func(request string, wanted error) {
		t.Helper()
		_, err := c.only(request)
		c.wantError(err, wanted)
	}
	c.SetClock(func() time.Time { return now })
	claim("one", nil)
	for range 3 {
		now = now.Add(14 * time.Second)
		claim("one", nil)
		claim("another", auth.ErrFull)
		claim("", auth.ErrFull)
	}
	now = now.Add(4 * time.Second)
	claim("one", auth.ErrFull)
	now = now.Add(15 * time.Second) // nothing was stored
	claim("another", nil)
	c.stored.Credentials = 1
	now = now.Add(time.Hour)
	claim("another", auth.ErrFull)
}

// Claims that are given back leave their room to others at once, in any order. A response
// may be lost: what is given back is given back once.
func TestAClaimIsGivenBackOnce(t *testing.T) {
	c := newClaims(t)
	claim := func() auth.Claim {
		t.Helper()
		claim, err := c.Claim(t.Context(), c.account, c.workspace, auth.Need{Provider: "openai", Bytes: 50}, auth.Room{Credentials: 2, Bytes: 100})
		c.wantError(err, nil)
		return claim
	}
	first, second := claim(), claim()
	c.want(1, auth.ErrFull, 0)
	c.wantError(c.Return(t.Context(), first), nil)
	c.faults.Heal()
	c.faults.Inject(faults.Rule{Operation: "UpdateItem", Call: 1, Fault: faults.LoseAnswer()})
	if err := c.Return(t.Context(), second); err == nil {
		t.Error("no error")
	}
	c.faults.Heal()
	c.wantError(c.Return(t.Context(), auth.Claim{}), nil) // of no workspace
	c.want(100, nil, 0)
	c.want(1, auth.ErrFull, 0)
}

// A claim is not given back if a copy may be stored in its room, if a count did not
// include it, or if a restore removed the count.
func TestAClaimIsKept(t *testing.T) {
	for name, meanwhile := range map[string]func(*claims) error{
		"a copy": func(c *claims) error { _, err := c.only("one"); return err },
		"a count": func(c *claims) error {
			c.SetClock(inAnHour)
			c.stored = auth.Room{}
			_, err := c.only("")
			return err
		},
		"a restore": func(c *claims) error {
			if err := c.registry.RaiseCounter(t.Context(), c.workspace, "openai", 7); err != nil {
				return err
			}
			c.stored = auth.Room{Credentials: 1, Bytes: 1}
			return nil
		},
	} {
		c := newClaims(t)
		claim, err := c.only("one")
		c.wantError(err, nil)
		c.wantError(meanwhile(c), nil)
		c.wantError(c.Return(t.Context(), claim), nil)
		next := map[string]string{"a restore": "one"}[name] // which does not share its first claim
		if _, err := c.only(next); !errors.Is(err, auth.ErrFull) {
			t.Errorf("after %s the room was given away twice: %v", name, err)
		}
	}
}

// A count is written again if its response was lost. The second write must not erase the
// claims in between.
func TestARepeatedCountErasesNoClaim(t *testing.T) {
	c, now := newClaims(t), time.Now()
	c.SetClock(func() time.Time { return now })
	c.want(1, nil, 0)
	c.want(1, nil, 0)
	c.stored = auth.Room{Credentials: 1, Bytes: 1}
	now = now.Add(time.Hour)
	c.faults.Heal()
	c.faults.Inject(faults.Rule{Operation: "UpdateItem", Call: 3, Attempt: 1, Fault: func(_ *http.Request, apply faults.Apply) (*http.Response, error) {
		_, _ = apply()
		c.want(1, nil, 1) // the last place
		return nil, io.ErrUnexpectedEOF
	}})
	c.want(1, auth.ErrFull, 0)
	c.want(1, auth.ErrFull, 0)
}

// After a lost response the count is used, and nothing is counted twice.
func TestACountSurvivesLostResponses(t *testing.T) {
	for call := range 4 {
		c := newClaims(t)
		c.want(1, nil, 0)
		c.want(1, nil, 0)
		c.SetClock(inAnHour)
		c.faults.Heal()
		c.faults.Inject(faults.Rule{Operation: "UpdateItem", Call: call + 1, Attempt: 1, Fault: faults.LoseAnswer()})
		c.want(1, nil, 1)
	}
}

// A claim of the last place keeps the place if its response was lost, also after a count.
func TestAClaimSurvivesALostResponse(t *testing.T) {
	c := newClaims(t)
	for _, call := range []int{1, 4} {
		c.faults.Heal()
		c.faults.Inject(faults.Rule{Operation: "UpdateItem", Call: call, Attempt: 1, Fault: faults.LoseAnswer()})
		_, err := c.only("")
		c.wantError(err, nil)
		c.SetClock(inAnHour) // nothing was stored
	}
}

// A workspace that is deleted, foreign or damaged is not counted. Its account gets an
// error if a row is damaged.
func TestOnlyAFullWorkspaceIsCounted(t *testing.T) {
	c := newClaims(t)
	sound := c.rows.Get(t, c.workspaceRow())
	_, err := c.claim(c.Positions, "another")
	c.wantError(err, auth.ErrNoWorkspace)
	c.rows.Set(t, c.workspaceRow(), "deleted_at", testkit.Number("1"))
	_, err = c.claim(c.Positions, c.account)
	c.wantError(err, auth.ErrNoWorkspace)
	for name, damage := range map[string]func(testkit.Row){
		"used is text":      func(row testkit.Row) { row["used"] = testkit.Text("many") },
		"no counters":       func(row testkit.Row) { delete(row, "next") },
		"counters are text": func(row testkit.Row) { row["next"] = testkit.Text("many") },
		"a counter is text": func(row testkit.Row) {
			row["next"] = &types.AttributeValueMemberM{Value: testkit.Row{"openai": testkit.Text("many")}}
		},
	} {
		c.rows.Put(t, sound)
		c.rows.Change(t, c.workspaceRow(), damage)
		if _, err := c.claim(c.Positions, c.account); !errors.Is(err, auth.ErrUnreadable) || !strings.HasPrefix(err.Error(), "stored workspace "+string(c.workspace)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c.counts.Load() != 0 {
		t.Errorf("%d counts", c.counts.Load())
	}
}
