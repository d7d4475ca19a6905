package main

import (
	"net/http"
	"testing"

	"signalbox.dev/infra/testkit/functest"
)

// TestEveryFault lets every call of every kind of request fail in every way.
func TestEveryFault(t *testing.T) {
	v := &vault{functest.New(t, assemble)}
	scenario := func(name string, status int, kind func(*slip), except ...functest.Exception) functest.Scenario {
		return functest.Scenario{Name: name, Status: status, Except: except, Set: func(t testing.TB) functest.Case {
			s := newSlip(t, v)
			kind(s)
			return s.testCase(status)
		}}
	}
	// Each time half of what is left is answered: in the end all of it.
	halves := func(status int) functest.Exception {
		return functest.Exception{Fault: "half unprocessed", Always: true, Status: []int{status}}
	}
	functest.Survive(t, []int{201, 400, 401, 403, 500},
		scenario("default workspace", 201, (*slip).plain),
		scenario("named workspace", 201, (*slip).named),
		scenario("allowed API keys", 201, (*slip).hashes, halves(201)),
		scenario("idempotency key", 201, (*slip).once),
		scenario("with everything", 201, (*slip).everything, halves(201)),
		scenario("replay", 201, (*slip).again),
		scenario("replay, the workspace gone", 201, (*slip).afterTheWorkspace),
		scenario("record expired", 201, (*slip).expired),
		scenario("the same was faster", 201, (*slip).late, remembered()...),
		scenario("the same was faster, the workspace gone", 201, (*slip).overtaken, besides("GenerateDataKey", 201)...),
		scenario("key of another request", 400, (*slip).different),
		scenario("unknown member", 400, (*slip).misspelt),
		scenario("foreign API key", 400, (*slip).foreignHash,
			append(told("GenerateDataKey", "UpdateItem workspace#"), halves(400))...),
		scenario("foreign workspace", 400, (*slip).foreignWorkspace, told("GenerateDataKey")...),
		scenario("no default workspace", 400, (*slip).noDefault),
		scenario("standard key", 403, (*slip).standard, ignored(403)...),
		scenario("unknown key", 401, (*slip).unknown, ignored(401)...),
	)
	v.SearchTables(t)
}

// remembered: the request that a transaction met is the same one, and its answer
// is there to be replayed, however long the conflict or the throttle lasts.
func remembered() []functest.Exception {
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

// told: a request that can never succeed is told so whatever else failed, unless
// time ran out for all calls at once.
func told(steps ...string) []functest.Exception {
	var all []functest.Exception
	for _, step := range steps {
		all = append(all, besides(step, http.StatusBadRequest)...)
	}
	return all
}

// ignored: the look-up of an earlier request is nothing to somebody who may not
// make one.
func ignored(status int) []functest.Exception { return besides("GetItem idem#", status) }

// besides is a call whose failing changes nothing.
func besides(step string, status int) []functest.Exception {
	return []functest.Exception{
		{Step: step, Fault: "deadline", Status: []int{status, http.StatusInternalServerError}},
		{Step: step, Fault: "deadline, applied", Status: []int{status, http.StatusInternalServerError}},
		{Step: step, Status: []int{status}},
	}
}
