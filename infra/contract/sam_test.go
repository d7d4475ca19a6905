package contract_test

import (
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"
)

// What `sam local start-api` does its own way. Where it only dresses an answer
// differently, asDeployed undoes it; where it decides differently, the tests of
// that decision are left out and the tests below say what it does instead.
// Nothing else is excused.

// samDecides are the tests about the gateway's own decisions, and those that ask
// for hundreds of requests at once of a gateway that serves them one by one.
var samDecides = []string{
	"TestUnknownRoutes", "TestUnreadableRequest", "TestShapesOfFileIDs", "TestFileIDs", "TestJobIDs", "TestOtherParameters",
	"TestEveryStatus", "TestStrictJSON", "TestAuthorizationHeader", "TestIdempotencyKey", "TestContentHeaders",
	"TestDeletesAtOnce", "TestCreatesAtOnce", "TestCreatesAtOnceUnderOneKey", "TestTenants",
}

// choose selects the tests for the gateway in front: those of sam local's own ways
// run before it and nowhere else.
func choose() error {
	flag.Parse()
	left := "^TestSAM"
	if the.sam = os.Getenv("SIGNALBOX_GATEWAY") == "sam"; the.sam {
		left = "^(" + strings.Join(samDecides, "|") + ")|^TestMarkerEverywhere$/as_a_route"
	}
	return flag.Set("test.skip", left)
}

// asDeployed gives the headers the form that a deployed REST API sends them in.
// sam local names its own server, renames nothing, and closes each connection.
func asDeployed(header http.Header) http.Header {
	if !the.sam {
		return header
	}
	header = header.Clone()
	header.Del("Server")
	header.Del("Connection")
	if challenge := header.Get("Www-Authenticate"); challenge != "" {
		header.Del("Www-Authenticate")
		header.Set("X-Amzn-Remapped-Www-Authenticate", challenge)
	}
	return header
}

// raw is the response as it came, whatever it is.
func (r request) raw(t *testing.T) response {
	t.Helper()
	got, err := r.send()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestSAMKnowsOneRequest: one constant request id for the whole process.
func TestSAMKnowsOneRequest(t *testing.T) {
	n := newTenant(t)
	job := n.job(t, "queued")
	first, second := get(job).as(n.management).do(t), get(job).do(t)
	if a, b := first.header.Get("X-Request-Id"), second.header.Get("X-Request-Id"); a == "" || a != b {
		t.Errorf("request ids %q and %q", a, b)
	}
}

// TestSAMAnswersUnknownRoutes with a 403 of its own: it has no gateway responses.
func TestSAMAnswersUnknownRoutes(t *testing.T) {
	for _, q := range []request{unrouted(http.MethodGet, "/nothing"), unrouted(http.MethodPut, "/byok")} {
		r := q.raw(t)
		if r.status != http.StatusForbidden || !strings.Contains(string(r.body), `"message":"Missing Authentication Token"`) {
			t.Errorf("%s %s: %d %s", q.method, q.path, r.status, r.body)
		}
	}
}

// TestSAMReadsPaths loosely: a trailing slash is no other route, and parameters
// arrive decoded.
func TestSAMReadsPaths(t *testing.T) {
	n := newTenant(t)
	job, file := n.job(t, "queued"), n.file(t, n.workspace)
	slash := get(job)
	slash.path += "/"
	slash.as(n.management).do(t).is(t, http.StatusOK)
	del(strings.Replace(file, "_", "%5F", 1)).as(n.management).do(t).is(t, http.StatusOK)
}

// TestSAMTakesText only: a body that is not UTF-8 never reaches the function.
func TestSAMTakesText(t *testing.T) {
	n := newTenant(t)
	if r := post("{\"key\":\"\xff\"}").as(n.management).raw(t); r.status != http.StatusBadGateway {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestSAMReachesEveryStatus that the functions answer by themselves.
func TestSAMReachesEveryStatus(t *testing.T) {
	n := newTenant(t)
	job, file := n.job(t, "succeeded"), n.file(t, n.workspace)
	spent := n.key(t, standardKey())
	exhaust(t, spent)
	for _, reached := range []struct {
		request
		status int
	}{
		{get(job).as(n.management), http.StatusOK},
		{get(job).as(n.management).with("If-None-Match", "*"), http.StatusNotModified},
		{get(job), http.StatusUnauthorized},
		{get(job).as(n.standard), http.StatusUnauthorized},
		{get(unknownJob).as(n.management), http.StatusNotFound},
		{post(bodyWith("")).as(n.management), http.StatusCreated},
		{post("{").as(n.management), http.StatusBadRequest},
		{post(bodyWith("")), http.StatusUnauthorized},
		{post(bodyWith("")).as(n.standard), http.StatusForbidden},
		{del(file).as(n.management), http.StatusOK},
		{del(file).as(n.management), http.StatusNotFound},
		{del(file), http.StatusUnauthorized},
		{del(file).as(spent), http.StatusTooManyRequests},
	} {
		reached.do(t).is(t, reached.status)
	}
}
