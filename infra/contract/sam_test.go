package contract_test

import (
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
)

// The suite runs through `sam local start-api` as through any gateway, except for
// what is listed here: asDeployed undoes how it changes headers, and the tests of
// what it decides in its own way are skipped by name. TestSAM tests what happens
// instead.

// difference is a decision of sam local's own.
type difference struct {
	what    string
	skipped string // tests of what a deployed gateway does, as -skip takes them
	send    func(*testing.T, tenant) []request
	status  int
	text    string // part of each response
}

// differences returns those in the gateway's routes, then those in messages.
func differences() []difference {
	return []difference{
		{
			what:    "an unknown route is a 403 of its own",
			skipped: "^TestUnknownRoutes$|^TestMarkerEverywhere$/^as_a_route|^TestFileIDs$/^escaped_(dots|path)$",
			send: func(t *testing.T, n tenant) []request {
				job, file := n.job(t, "queued"), n.file(t, n.workspace)
				all := []request{del("%2e%2e%2f" + file), del("file_x%2f..%2f" + file), unrouted(http.MethodGet, "/"+testkit.Marker)}
				for _, r := range unknownRoutes(job, file) {
					switch { // those of the next three differences
					case strings.Contains(r.path, "//"), r.path == "/byok/",
						strings.HasSuffix(r.path, job+"/"), strings.HasSuffix(r.path, file+"/"),
						r.method == http.MethodHead && strings.HasSuffix(r.path, job):
					default:
						all = append(all, r)
					}
				}
				return all
			},
			status: http.StatusForbidden, text: `{"message":"Missing Authentication Token"}`,
		}, {
			what: "repeated slashes are redirected",
			send: func(t *testing.T, n tenant) []request {
				return []request{
					unrouted(http.MethodPost, "//byok"), unrouted(http.MethodPost, "/byok//"), del("/" + n.file(t, n.workspace)),
				}
			},
			status: http.StatusPermanentRedirect, text: "/api/v1/",
		}, {
			what:    "a trailing slash is ignored",
			skipped: "^TestJobIDs$/^escaped_slash$|^TestFileIDs$/^escaped_slash$",
			send: func(t *testing.T, n tenant) []request {
				return []request{
					get(n.job(t, "queued") + "/"), get(n.job(t, "queued") + "%2f"),
					del(n.file(t, n.workspace) + "/"), del(n.file(t, n.workspace) + "%2F"),
				}
			},
			status: http.StatusOK,
		}, {
			what: "HEAD of a route with GET is an error of its own",
			send: func(t *testing.T, n tenant) []request {
				return []request{unrouted(http.MethodHead, "/scim/sync-jobs/"+n.job(t, "queued"))}
			},
			status: http.StatusBadGateway,
		}, {
			what:    "path parameters arrive decoded",
			skipped: "^TestFileIDs$/^escaped_(letter|underline)$|^TestJobIDs$/^escaped_digit$",
			send: func(t *testing.T, n tenant) []request {
				return []request{
					get(escaped(n.job(t, "queued"))), del(escaped(n.file(t, n.workspace))), del(strings.Replace(n.file(t, n.workspace), "_", "%5f", 1)),
				}
			},
			status: http.StatusOK,
		}, {
			what:    "a body that is not UTF-8 is refused",
			skipped: "^TestStrictJSON$/^(not_UTF-8|overlong|surrogate_in_UTF-8|cut_character)$",
			send: func(*testing.T, tenant) []request {
				return []request{
					post(keyBody("\"a\xffb\"")), post(keyBody("\"a\xc0\xafb\"")),
					post(keyBody("\"\xed\xa0\x80\"")), post(keyBody("\"\xf0\x9f\x98\"")),
				}
			},
			status: http.StatusBadGateway, text: `{"message":"Internal server error"}`,
		}, {
			what:    "a body of any size is passed on, and cut",
			skipped: "^TestEveryStatus$/_Bad_Request$",
			send: func(*testing.T, tenant) []request {
				return []request{get(unknownJob).tooLarge(), post("").tooLarge(), del("file_unknown").tooLarge()}
			},
			status: http.StatusInternalServerError, text: "Internal Server Error",
		}, {
			what:    "of a repeated header one is left",
			skipped: `^TestIdempotencyKey$/^sent_twice|^TestContentHeaders$/^Content-Type\[application/json_application/json\]$`,
			send: func(*testing.T, tenant) []request {
				return []request{
					post(bodyWith("")).with("Idempotency-Key", "a", "b"),
					post(bodyWith("")).with("Content-Type", "application/json", "application/json"),
				}
			},
			status: http.StatusCreated,
		},
	}
}

// TestSAM: each difference still exists, and its responses contain no secret.
func TestSAM(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, d := range differences() {
		t.Run(d.what, func(t *testing.T) {
			for _, r := range d.send(t, n) {
				got, err := r.as(n.management).send()
				must(t, err)
				body := string(got.body)
				if got.status != d.status || r.method != http.MethodHead && !strings.Contains(body, d.text) {
					t.Errorf("%s %s: got %d %s, want %d %s", r.method, r.path, got.status, body, d.status, d.text)
				}
				if strings.Contains(body, n.management) || strings.Contains(body, testkit.Marker) {
					t.Errorf("%s %s: the response contains a secret", r.method, r.path)
				}
			}
		})
	}
}

// TestSAMHasOneRequestID: all responses have one request id, where a deployed
// gateway makes a new one for each.
func TestSAMHasOneRequestID(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	first, second := get(unknownJob).as(n.management).do(t), get(unknownJob).do(t)
	if a, b := first.header.Get("X-Request-Id"), second.header.Get("X-Request-Id"); a == "" || a != b {
		t.Errorf("request ids %q and %q", a, b)
	}
}

// skip skips the tests that are not for the gateway in front.
func skip() error {
	flag.Parse()
	skipped := []string{"^TestSAM"}
	if the.sam = os.Getenv("SIGNALBOX_GATEWAY") == "sam"; the.sam {
		skipped = nil
		for _, d := range differences() {
			if d.skipped != "" {
				skipped = append(skipped, d.skipped)
			}
		}
	}
	if given := flag.Lookup("test.skip").Value.String(); given != "" {
		skipped = append(skipped, given)
	}
	return flag.Set("test.skip", strings.Join(skipped, "|"))
}

// asDeployed returns the headers as a deployed REST API sends them. sam local
// renames none, sends its own name and closes each connection.
func asDeployed(header http.Header) http.Header {
	if !the.sam {
		return header
	}
	header = header.Clone()
	if strings.HasPrefix(header.Get("Server"), "Werkzeug/") {
		header.Del("Server")
	}
	if header.Get("Connection") == "close" {
		header.Del("Connection")
	}
	if challenge, ok := header["Www-Authenticate"]; ok {
		header.Del("Www-Authenticate")
		header["X-Amzn-Remapped-Www-Authenticate"] = challenge
	}
	return header
}
