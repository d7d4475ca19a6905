package main

import (
	"cmp"
	"container/list"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/routing"
)

// plan is the decision about a request. plans keeps it until its last turn.
type plan struct {
	name    string
	made    time.Time
	caller  *routing.Caller
	request routing.Request
	steps   []routing.Step
	reading *routing.Reading // for the first turn, while it is fresh
	taken   int              // the number of turns taken
}

// turn is one attempt of a plan.
type turn struct {
	plan
	step routing.Step
}

// String names the turn's credential for the operator.
func (t turn) String() string {
	return fmt.Sprintf("credential %s for %s, workspace %s, account %s", cmp.Or(t.step.Credential, "shared"), t.step.Provider, t.caller.Workspace(), t.caller.Account())
}

// plans remembers the plans of requests under way, bounded in number and age. A
// restart forgets them all: the requests under way then end.
type plans struct {
	most int
	age  time.Duration

	mu     sync.Mutex
	byName map[string]*list.Element // of *plan
	byAge  *list.List               // the oldest first
}

func newPlans(most int, age time.Duration) *plans {
	return &plans{most: most, age: age, byName: make(map[string]*list.Element), byAge: list.New()}
}

// add remembers a plan under a name that cannot be guessed.
func (p *plans) add(made plan) (name string) {
	made.name, made.made = rand.Text()+rand.Text(), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for oldest := p.byAge.Front(); oldest != nil && (len(p.byName) >= p.most || p.isOld(oldest)); oldest = p.byAge.Front() {
		p.remove(oldest)
	}
	p.byName[made.name] = p.byAge.PushBack(&made)
	time.AfterFunc(byok.ReadTime, func() { // a reading holds large rows
		p.mu.Lock()
		defer p.mu.Unlock()
		made.reading = nil
	})
	return made.name
}

// take takes the next turn of a plan. There is none if mayTake refuses the caller, if
// all turns are taken, or if the plan is too old.
func (p *plans) take(name string, mayTake func(*routing.Caller) bool) (turn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byName[name]
	if e == nil || p.isOld(e) || !mayTake(planOf(e).caller) {
		return turn{}, false
	}
	is := planOf(e)
	t := turn{*is, is.steps[is.taken]}
	is.taken++
	is.reading = nil
	if is.taken == len(is.steps) {
		p.remove(e)
	}
	return t, true
}

// count is the number of remembered plans.
func (p *plans) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byName)
}

func (p *plans) isOld(e *list.Element) bool { return time.Since(planOf(e).made) > p.age }

func (p *plans) remove(e *list.Element) {
	delete(p.byName, planOf(e).name)
	p.byAge.Remove(e)
}

func planOf(e *list.Element) *plan { return e.Value.(*plan) } //nolint:errcheck // the list holds nothing else
