package main

import (
	"net/http"
	"slices"
	"testing"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/infra/testkit/functest"
)

// The calls of the function.
const (
	key, idem, account = "GetItem key#", "GetItem idem#", "GetItem account#"
	position, dataKey  = "UpdateItem workspace#", "GenerateDataKey"
	hashes             = "BatchGetItem key#"
	put, both          = "PutItem workspace#", "TransactWriteItems workspace#+idem#"
)

// TestEveryFault makes every call of every kind of request fail in every way, and
// counts the round trips of each.
func TestEveryFault(t *testing.T) {
	env := functest.New(t, assemble)
	scenario := func(name string, status int, kind func(*fixture), roundTrips int, calls []string, except ...functest.Exception) functest.Scenario {
		return functest.Scenario{Name: name, Status: status, RoundTrips: roundTrips, Calls: calls, Except: except, Set: func(t testing.TB) functest.Case {
			f := newFixture(t, env)
			kind(f)
			return f.newCase(status)
		}}
	}
	// Each time half of what is left is answered: in the end all of it.
	halves := func(status int) functest.Exception {
		return functest.Exception{Fault: "half unprocessed", Always: true, Status: []int{status}}
	}
	// A request that can never succeed gets its 400 whatever else failed.
	foreignKey := slices.Concat(functest.ExceptCall(dataKey, 400), functest.ExceptCall(position, 400), []functest.Exception{halves(400)})
	functest.Survive(t, []int{201, 400, 401, 403, 500},
		scenario("default workspace", 201, (*fixture).defaultWorkspace, 4, []string{key, account, position, dataKey, put}),
		scenario("named workspace", 201, (*fixture).namedWorkspace, 3, []string{key, position, dataKey, put}),
		scenario("allowed API keys", 201, (*fixture).allowedKeys, 4, []string{key, account, position, dataKey, hashes, put}, halves(201)),
		scenario("idempotency key", 201, (*fixture).idempotent, 3, []string{key, idem, position, dataKey, both}),
		scenario("with everything", 201, (*fixture).everything, 3, []string{key, idem, position, dataKey, hashes, both}, halves(201)),
		scenario("replay", 201, (*fixture).replay, 1, []string{key, idem}),
		scenario("replay, workspace deleted", 201, (*fixture).replayWithoutWorkspace, 1, []string{key, idem}),
		scenario("record expired", 201, (*fixture).recordExpired, 3, []string{key, idem, position, dataKey, both}),
		scenario("the same was faster", 201, (*fixture).sameWasFaster, 3, []string{key, idem, position, dataKey, both}, recorded()...),
		scenario("the same was faster, workspace deleted", 201, (*fixture).sameWasFasterWithoutWorkspace, 3,
			[]string{key, idem, position, dataKey, idem}, functest.ExceptCall(dataKey, 201)...),
		scenario("idempotency key of another request", 400, (*fixture).differentRequest, 1, []string{key, idem}),
		scenario("unknown member", 400, (*fixture).unknownMember, 1, []string{key}),
		scenario("foreign API key", 400, (*fixture).foreignKey, 3, []string{key, account, position, dataKey, hashes}, foreignKey...),
		scenario("foreign workspace", 400, (*fixture).foreignWorkspace, 2, []string{key, position, dataKey}, functest.ExceptCall(dataKey, 400)...),
		scenario("foreign workspace, idempotency key", 400, (*fixture).foreignWorkspaceIdempotent, 3,
			[]string{key, idem, position, dataKey, idem}, functest.ExceptCall(dataKey, 400)...),
		scenario("no default workspace", 400, (*fixture).noDefaultWorkspace, 2, []string{key, account}),
		// The look-up of an earlier request does not matter to a caller who may make none.
		scenario("standard key", 403, (*fixture).standardKey, 1, []string{key, idem}, functest.ExceptCall(idem, 403)...),
		scenario("unknown key", 401, (*fixture).unknownKey, 1, []string{key, idem}, functest.ExceptCall(idem, 401)...),
	)
	env.SearchTables(t)
}

// recorded returns the exceptions for a transaction in conflict with that of the
// same request, whose answer is there to be replayed however long the conflict or
// the throttle lasts.
func recorded() []functest.Exception {
	var all []functest.Exception
	for _, code := range []string{"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"} {
		for _, other := range []string{"None", "ThrottlingError"} {
			if code != other {
				all = append(all,
					functest.Exception{Fault: "cancelled: " + code + ", " + other, Status: []int{http.StatusCreated}},
					functest.Exception{Fault: "cancelled: " + other + ", " + code, Status: []int{http.StatusCreated}})
			}
		}
	}
	return all
}

// Of two different requests at once under one idempotency key, the one that comes
// second at the commit is refused and stores nothing.
func TestADifferentRequestWasFaster(t *testing.T) {
	f := newFixture(t, functest.New(t, assemble))
	f.idempotent()
	faster := f.event()
	f.changed = map[string]any{"disabled": true}
	got := f.env.Instance().Invoke(t, f.event(), faults.Rule{
		Operation: dataKey, Fault: faults.Then(func() { f.env.Instance().Invoke(t, faster) }),
	})
	if stored := f.check(t, got); !got.Is(t, http.StatusBadRequest) || stored != 1 {
		t.Errorf("%d credentials are stored, want the faster one's", stored)
	}
}
