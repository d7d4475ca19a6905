package contract_test

import (
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"
)

// The suite runs through `sam local start-api` as through any gateway, save for
// what stands here: how it dresses answers, which asDeployed checks and undoes,
// and where it decides otherwise than a deployed REST API, which are samsOwn. The
// tests of such a decision are left out, each by its name, and TestSAM holds what
// happens instead.

// difference is one thing that sam local decides in its own way.
type difference struct {
	what   string
	left   string // tests of how it should be, as -skip takes them
	ask    func(*testing.T, tenant) []request
	status int
	text   string // part of each answer
}

func samsOwn() []difference { return append(samsPaths(), samsMessages()...) }

func samsPaths() []difference {
	return []difference{
		{
			what: "an unknown route is a 403 of its own",
			left: "^TestUnknownRoutes$|^TestMarkerEverywhere$/^as_a_route|^TestFileIDs$/^escaped_(dots|path)$",
			ask: func(t *testing.T, n tenant) []request {
				file := n.file(t, n.workspace)
				return append(unknownTo(t, n), del("%2e%2e%2f"+file), del("file_x%2f..%2f"+file), unrouted(http.MethodGet, "/"+marker))
			},
			status: http.StatusForbidden, text: `{"message":"Missing Authentication Token"}`,
		}, {
			what: "slashes that follow each other are redirected", // in TestUnknownRoutes
			ask: func(t *testing.T, n tenant) []request {
				return []request{
					unrouted(http.MethodPost, "//byok"), unrouted(http.MethodPost, "/byok//"), del("/" + n.file(t, n.workspace)),
				}
			},
			status: http.StatusPermanentRedirect, text: "/api/v1/",
		}, {
			what: "a path's last slash is nothing", // in TestUnknownRoutes, too
			left: "^TestJobIDs$/^escaped_slash$|^TestFileIDs$/^escaped_slash$",
			ask: func(t *testing.T, n tenant) []request {
				return []request{
					get(n.job(t, "queued") + "/"), get(n.job(t, "queued") + "%2f"),
					del(n.file(t, n.workspace) + "/"), del(n.file(t, n.workspace) + "%2F"),
				}
			},
			status: http.StatusOK,
		}, {
			what: "HEAD of what can be read is an error of its own", // in TestUnknownRoutes
			ask: func(t *testing.T, n tenant) []request {
				return []request{unrouted(http.MethodHead, "/scim/sync-jobs/"+n.job(t, "queued"))}
			},
			status: http.StatusBadGateway,
		}, {
			what: "a path's parameters arrive decoded", left: "^TestFileIDs$/^escaped_(letter|underline)$|^TestJobIDs$/^escaped_digit$",
			ask: func(t *testing.T, n tenant) []request {
				return []request{
					get(escaped(n.job(t, "queued"))), del(escaped(n.file(t, n.workspace))), del(strings.Replace(n.file(t, n.workspace), "_", "%5f", 1)),
				}
			},
			status: http.StatusOK,
		},
	}
}

func samsMessages() []difference {
	return []difference{
		{
			what: "a body that is not UTF-8 goes no further",
			left: "^TestStrictJSON$/^(not_UTF-8|overlong|surrogate_in_UTF-8|cut_character)$",
			ask: func(*testing.T, tenant) []request {
				return []request{
					post(key("\"a\xffb\"")), post(key("\"a\xc0\xafb\"")),
					post(key("\"\xed\xa0\x80\"")), post(key("\"\xf0\x9f\x98\"")),
				}
			},
			status: http.StatusBadGateway, text: `{"message":"Internal server error"}`,
		}, {
			what: "a body of any size goes on, and is cut", left: "^TestEveryStatus$/_Bad_Request$",
			ask: func(*testing.T, tenant) []request {
				return []request{
					get(unknownJob).tooLarge(), post("").tooLarge(), del("file_unknown").tooLarge(),
				}
			},
			status: http.StatusInternalServerError, text: "Internal Server Error",
		}, {
			what: "of a repeated header one is left",
			left: `^TestIdempotencyKey$/^sent_twice|^TestContentHeaders$/^Content-Type\[application/json_application/json\]$`,
			ask: func(*testing.T, tenant) []request {
				return []request{
					post(bodyWith("")).with("Idempotency-Key", "a", "b"),
					post(bodyWith("")).with("Content-Type", "application/json", "application/json"),
				}
			},
			status: http.StatusCreated,
		},
	}
}

// unknownTo are the requests that TestUnknownRoutes makes, less those that sam
// local takes, redirects or trips over.
func unknownTo(t *testing.T, n tenant) []request {
	t.Helper()
	job, file := n.job(t, "queued"), n.file(t, n.workspace)
	var all []request
	for _, r := range append(unknownMethods(job, file), unknownPaths(job, file)...) {
		switch {
		case strings.Contains(r.path, "//"),
			strings.HasSuffix(r.path, job+"/"), strings.HasSuffix(r.path, file+"/"), r.path == "/byok/",
			r.method == http.MethodHead && strings.HasSuffix(r.path, job):
		default:
			all = append(all, r)
		}
	}
	return all
}

// TestSAM: each difference is there still, and gives nothing away.
func TestSAM(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for _, d := range samsOwn() {
		t.Run(d.what, func(t *testing.T) {
			for _, r := range d.ask(t, n) {
				got, err := r.as(n.management).send()
				if err != nil {
					t.Fatal(err)
				}
				if got.status != d.status || r.method != http.MethodHead && !strings.Contains(string(got.body), d.text) {
					t.Errorf("%s %s: got %d %s, want %d %s", r.method, r.path, got.status, got.body, d.status, d.text)
				}
				if s, found := reveals(got.body, []string{n.management, marker}); found {
					t.Errorf("%s %s answered with the secret %s", r.method, r.path, s)
				}
			}
		})
	}
}

// TestSAMKnowsOneRequest: all answers have one request id, where a deployed
// gateway has one for each (checkEnvelope).
func TestSAMKnowsOneRequest(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	first, second := get(unknownJob).as(n.management).do(t), get(unknownJob).do(t)
	if a, b := first.header.Get("X-Request-Id"), second.header.Get("X-Request-Id"); a == "" || a != b {
		t.Errorf("request ids %q and %q", a, b)
	}
}

// choose leaves out what the gateway in front decides in its own way, sam local
// or any other, beside what -skip names.
func choose() error {
	flag.Parse()
	left := []string{"^TestSAM"}
	if the.sam = os.Getenv("SIGNALBOX_GATEWAY") == "sam"; the.sam {
		left = nil
		for _, d := range samsOwn() {
			if d.left != "" {
				left = append(left, d.left)
			}
		}
	}
	if skip := flag.Lookup("test.skip").Value.String(); skip != "" {
		left = append(left, skip)
	}
	return flag.Set("test.skip", strings.Join(left, "|"))
}

// asDeployed gives the headers the form in which a deployed REST API sends them.
// sam local renames none, names its server and closes each connection.
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
