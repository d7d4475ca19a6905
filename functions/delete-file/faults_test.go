package main

import (
	"slices"
	"testing"

	"signalbox.dev/infra/testkit/functest"
)

// The calls of the function.
const (
	key, slot          = "GetItem key#", "UpdateItem limit#"
	account, workspace = "GetItem account#", "GetItem workspace#"
	erase              = "DeleteObject"
	list, purge        = "ListObjectVersions", "DeleteObjects"
)

// TestEveryFault makes every call of every kind of request fail in every way, and
// counts the round trips of each.
func TestEveryFault(t *testing.T) {
	b := newBuckets(t)
	tenant := b.unversioned.NewTenant(t)
	scenario := func(name string, status int, env *functest.Env, store func(*fixture), event func(*fixture) functest.Event,
		roundTrips int, calls []string, except ...functest.Exception,
	) functest.Scenario {
		return functest.Scenario{Name: name, Status: status, RoundTrips: roundTrips, Calls: calls, Except: except, Set: func(t testing.TB) functest.Case {
			f := newFixture(t, env, tenant)
			store(f)
			return f.newCase(status, event(f))
		}}
	}
	deletion := []string{key, slot, workspace, erase}
	everyVersion := []string{key, slot, workspace, erase, list, purge, purge, list}
	notFound := []string{key, slot, workspace, erase, list}
	lost := append(lostAnswers(), throttled()...)
	// A request that is refused gets its status whatever became of the workspace's
	// look-up, and where the key is unknown, of the limiter's.
	overLimit := append(throttled(), functest.ExceptCall(workspace, limited)...)
	unknownKey := append(functest.ExceptCall(workspace, unknown), functest.ExceptCall(slot, unknown)...)
	plain, versioned := b.unversioned, b.versioned
	noFile, oneFile, twoVersions, named := (*fixture).noFile, (*fixture).oneFile, (*fixture).twoVersions, (*fixture).named
	functest.Survive(t, []int{done, unknown, absent, limited, failed},
		scenario("a file", done, plain, oneFile, named, 2, deletion, lost...),
		scenario("default workspace", done, plain, oneFile, (*fixture).unnamed, 3, []string{key, slot, account, erase}, lost...),
		scenario("bound key", done, plain, oneFile, (*fixture).boundKey, 2, []string{key, slot, erase}, lost...),
		scenario("within the burst", done, plain, oneFile, (*fixture).withinBurst, 3, append(slices.Clone(deletion), slot), lost...),
		scenario("two versions", done, versioned, twoVersions, named, 6, everyVersion, throttled()...),
		scenario("hidden by a deletion that stopped", done, versioned, (*fixture).hiddenVersions, named, 6, everyVersion, throttled()...),
		scenario("versioning suspended", done, b.suspended, twoVersions, named, 5,
			[]string{key, slot, workspace, erase, list, purge, list}, throttled()...),
		scenario("no such file", absent, plain, noFile, named, 3, notFound, throttled()...),
		scenario("no such file, versioned", absent, versioned, noFile, named, 3, notFound, throttled()...),
		scenario("no file id", absent, plain, oneFile, (*fixture).noFileID, 1, []string{key, slot}, throttled()...),
		scenario("no workspace id", absent, plain, oneFile, (*fixture).noWorkspace, 1, []string{key, slot}, throttled()...),
		scenario("another account's", absent, plain, oneFile, (*fixture).foreignKey, 1, []string{key, slot, workspace}, throttled()...),
		scenario("another workspace's", absent, plain, oneFile, (*fixture).boundElsewhere, 3, []string{key, slot, erase, list}, throttled()...),
		scenario("limit exceeded", limited, plain, oneFile, (*fixture).overLimit, 1, []string{key, slot, workspace}, overLimit...),
		scenario("unknown key", unknown, plain, oneFile, (*fixture).unknownKey, 1, []string{key, slot, workspace}, unknownKey...),
	)
	b.unversioned.SearchTables(t)
}

// lostAnswers returns the exceptions for the deletion of an unversioned file whose
// answer is lost: its second attempt finds nothing.
func lostAnswers() []functest.Exception {
	var all []functest.Exception
	for _, fault := range []string{"answer lost", "timed out, applied", "answer cut", "answer garbled", "answer of another kind"} {
		all = append(all,
			functest.Exception{Call: erase, Fault: fault, Always: true, Status: []int{failed}},
			functest.Exception{Call: erase, Fault: fault, Status: []int{absent}})
	}
	return all
}

// throttled returns the exceptions for the limiter's item being throttled, as that
// of a caller who sends too much is.
func throttled() []functest.Exception {
	var all []functest.Exception
	for _, code := range []string{"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"} {
		all = append(all, functest.Exception{
			Call: slot, Fault: "throttled: " + code + " TableWriteKeyRangeThroughputExceeded", Always: true, Status: []int{limited},
		})
	}
	return all
}
