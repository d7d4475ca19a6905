package main

import (
	"net/http"
	"slices"
	"testing"

	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
)

// Some answers of the operation.
const (
	done    = http.StatusOK
	absent  = http.StatusNotFound
	refused = http.StatusTooManyRequests
	unknown = http.StatusUnauthorized
	failed  = http.StatusInternalServerError
)

// TestEveryFault lets every call of every kind of request fail in every way.
func TestEveryFault(t *testing.T) {
	s := functest.New(t, assemble)
	tenant, stranger := s.Tenant(t), s.Tenant(t)
	plain, versioned, paused := newCabinet(t, s, off), newCabinet(t, s, enabled), newCabinet(t, s, suspended)
	named := func(d *desk) functest.Event { return remove(d.workspace, string(d.file)).As(d.key) }
	unnamed := func(d *desk) functest.Event { return remove("", string(d.file)).As(d.key) }
	burst := func(d *desk) functest.Event { return d.used(named(d).Limited("1", "100000")) }
	spent := func(d *desk) functest.Event { return d.used(named(d).Limited("1", "1")) }
	foreign := func(d *desk) functest.Event { return named(d).As(stranger.Standard(d, "")) }
	stray := func(d *desk) functest.Event { return named(d).As(functest.Marker + string(d.file)) }
	nonsense := func(d *desk) functest.Event { return remove(d.workspace, functest.Marker).As(d.key) }
	elsewhere := func(d *desk) functest.Event { return unnamed(d).As(tenant.Standard(d, tenant.Other(d))) }

	scenario := func(name string, status int, c *cabinet, fill func(*desk), event func(*desk) functest.Event, except ...functest.Exception) functest.Scenario {
		return functest.Scenario{Name: name, Status: status, Except: except, Set: func(t testing.TB) functest.Case {
			d := &desk{TB: t, cabinet: c, workspace: tenant.Workspace, file: ids.NewFile(), key: tenant.Standard(t, "")}
			fill(d)
			return d.testCase(status, event(d))
		}}
	}
	functest.Survive(t, []int{done, unknown, absent, refused, failed},
		scenario("a file", done, plain, (*desk).one, named, append(lostAnswers(), throttled()...)...),
		scenario("in the default workspace", done, plain, (*desk).one, unnamed, append(lostAnswers(), throttled()...)...),
		scenario("within the burst", done, plain, (*desk).one, burst, append(lostAnswers(), throttled()...)...),
		scenario("two versions", done, versioned, (*desk).two, named, throttled()...),
		scenario("hidden by a deletion that died", done, versioned, (*desk).hidden, named, throttled()...),
		scenario("versioning suspended", done, paused, (*desk).two, named, throttled()...),
		scenario("no such file", absent, plain, (*desk).nothing, named, throttled()...),
		scenario("no such file, versions kept", absent, versioned, (*desk).nothing, named, throttled()...),
		scenario("no file id", absent, plain, (*desk).one, nonsense, throttled()...),
		scenario("another account's", absent, plain, (*desk).one, foreign, throttled()...),
		scenario("another workspace's", absent, plain, (*desk).one, elsewhere, throttled()...),
		scenario("limit exceeded", refused, plain, (*desk).one, spent, before(refused)...),
		scenario("unknown key", unknown, plain, (*desk).one, stray, slices.Concat(before(unknown), limiterFailing(unknown))...),
	)
	s.SearchTables(t)
}

// lostAnswers are those by which one request deletes the file of an unversioned
// bucket and does not hear of it: its second attempt finds nothing.
func lostAnswers() []functest.Exception {
	var all []functest.Exception
	for _, fault := range []string{"answer lost", "timed out, applied", "answer cut", "answer garbled", "answer of another kind"} {
		all = append(all,
			functest.Exception{Step: "DeleteObject", Fault: fault, Always: true, Status: []int{failed}},
			functest.Exception{Step: "DeleteObject", Fault: fault, Status: []int{absent}})
	}
	return all
}

// throttled: DynamoDB throttles the item of a caller who asks too often.
func throttled() []functest.Exception {
	var all []functest.Exception
	for _, code := range []string{"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"} {
		all = append(all, functest.Exception{Step: "UpdateItem limit#", Fault: "throttled: " + code + " TableWriteKeyRangeThroughputExceeded", Always: true, Status: []int{refused}})
	}
	return all
}

// before: who is refused hears of it, whatever became of the workspace's
// look-up; unless time runs out for all of them at once.
func before(status int) []functest.Exception {
	return append(throttledUnless(status),
		functest.Exception{Step: "GetItem workspace#", Fault: "deadline", Status: []int{status, failed}},
		functest.Exception{Step: "GetItem workspace#", Fault: "deadline, applied", Status: []int{status, failed}},
		functest.Exception{Step: "GetItem workspace#", Status: []int{status}})
}

func throttledUnless(status int) []functest.Exception {
	if status == unknown {
		return nil
	}
	return throttled()
}

// limiterFailing: the same of the limiter.
func limiterFailing(status int) []functest.Exception {
	return []functest.Exception{
		{Step: "UpdateItem limit#", Fault: "deadline", Status: []int{status, failed}},
		{Step: "UpdateItem limit#", Fault: "deadline, applied", Status: []int{status, failed}},
		{Step: "UpdateItem limit#", Status: []int{status}},
	}
}
