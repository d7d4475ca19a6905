package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
)

const (
	responseTypes = "API Gateway Developer Guide, \"Gateway response types\""
	importantNote = "API Gateway Developer Guide, \"Amazon API Gateway important notes\""
	gatewayQuotas = "API Gateway Developer Guide, \"Quotas for configuring and running a REST API\""
	proxyHeaders  = importantNote + ": header names"
)

// gatewayProbes are about what API Gateway does with requests and answers.
func gatewayProbes() []probe {
	return []probe{
		{
			id: "unknown-route", live: true,
			asks:    "which answer an unknown route takes",
			expects: "404 in our envelope",
			source:  responseTypes + ": MISSING_AUTHENTICATION_TOKEN is returned for an unsupported method or resource too",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				return a.refused(ctx, request{method: http.MethodGet, path: "/nothing"}, http.StatusNotFound)
			},
			wrong: map[string]verdict{"unknown-route-403": fail},
		}, {
			id: "unknown-route-bearer", live: true,
			asks:    "which answer an unknown route takes with a bearer token, which may be tried as a signature",
			expects: "404 in our envelope, without the token",
			source: "two possible answers, both handled: MISSING_AUTHENTICATION_TOKEN, INVALID_SIGNATURE and EXPIRED_TOKEN are our 404; " +
				"a type that only DEFAULT_4XX covers is our 400, which DIFFERS",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				got, err := a.send(ctx, request{method: http.MethodGet, path: "/nothing", key: a.management})
				switch {
				case err != nil:
					return finding{}, err
				case strings.Contains(fmt.Sprint(got.header, got.body), a.management):
					return failed("the answer contains the token: %s", got), nil
				case got.problem(http.StatusNotFound) == "":
					return passed("%s", got), nil
				case got.problem(http.StatusBadRequest) == "":
					return differing("%s", got), nil
				}
				return failed("%s: %s", got.problem(http.StatusNotFound), got), nil
			},
			wrong: map[string]verdict{"bearer-as-signature-400": differs, "bearer-quoted": fail},
		}, {
			id: "wrong-method", live: true,
			asks:    "which answer a wrong method takes on a known path",
			expects: "404 in our envelope",
			source:  responseTypes + ": MISSING_AUTHENTICATION_TOKEN, as for an unknown route",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				for _, r := range []request{
					{method: http.MethodGet, path: "/byok"}, {method: http.MethodPut, path: "/files/file_x"}, {method: http.MethodDelete, path: "/scim/sync-jobs/x"},
				} {
					if f, err := a.refused(ctx, r, http.StatusNotFound); err != nil || f.verdict != pass {
						return f, err
					}
				}
				return passed("404 in our envelope for GET /byok, PUT /files/{file_id} and DELETE /scim/sync-jobs/{id}"), nil
			},
			wrong: map[string]verdict{"wrong-method-405": fail},
		}, {
			id: "body-7-mb", live: true,
			asks:    "which answer a body takes that is too large for Lambda (6 MB) and not for the gateway",
			expects: "400 in our envelope",
			source:  "two possible answers, both handled: REQUEST_TOO_LARGE as we declare it, or the gateway's own 413, which DIFFERS (Lambda quotas: 6 MB for each request)",
			ask:     func(ctx context.Context, a *asker) (finding, error) { return a.tooLarge(ctx, 7<<20) },
			wrong:   map[string]verdict{"body-7-mb-413": differs, "body-7-mb-accepted": fail},
		}, {
			id: "body-11-mb", live: true,
			asks:    "which answer a body over the gateway's 10 MB takes",
			expects: "400 in our envelope",
			source:  "two possible answers, both handled: " + responseTypes + " has REQUEST_TOO_LARGE; its note that this type cannot be customised makes it a 413, which DIFFERS",
			ask:     func(ctx context.Context, a *asker) (finding, error) { return a.tooLarge(ctx, 11<<20) },
			wrong:   map[string]verdict{"body-11-mb-413": differs, "body-11-mb-accepted": fail},
		}, {
			id: "etag", live: true,
			asks:    "whether ETag passes the gateway under its name, and If-None-Match reaches the function",
			expects: "200 with ETag, then 304 without a body",
			source:  proxyHeaders + ": neither is in the table of headers that are remapped or dropped",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				got, err := a.send(ctx, get(a.job, a.management))
				if err != nil {
					return finding{}, err
				}
				tag := got.header.Get("Etag")
				if got.status != http.StatusOK || tag == "" {
					return failed("%d, headers %v", got.status, headerNames(got.header)), nil
				}
				again, err := a.send(ctx, get(a.job, a.management).with("If-None-Match", tag))
				if err == nil && (again.status != http.StatusNotModified || again.body != "") {
					return failed("with ETag %s, then %s", tag, again), nil
				}
				return passed("200 with ETag, then 304"), err
			},
			wrong: map[string]verdict{"etag-renamed": fail, "if-none-match-dropped": fail},
		}, {
			id: "www-authenticate", live: true,
			asks:    "under which name WWW-Authenticate leaves the gateway",
			expects: "x-amzn-Remapped-WWW-Authenticate: Bearer",
			source:  "two possible answers, both handled: remapped (" + proxyHeaders + "), or under its own name, which DIFFERS; no client needs it to read our 401",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				got, err := a.send(ctx, get(a.job, ""))
				if err != nil {
					return finding{}, err
				}
				own, remapped := got.header.Get("Www-Authenticate"), got.header.Get("X-Amzn-Remapped-Www-Authenticate")
				switch problem := got.problem(http.StatusUnauthorized); {
				case problem != "":
					return failed("%s: %s", problem, got), nil
				case strings.HasPrefix(remapped, "Bearer"):
					return passed("x-amzn-Remapped-WWW-Authenticate: %s", remapped), nil
				case strings.HasPrefix(own, "Bearer"):
					return differing("WWW-Authenticate: %s", own), nil
				}
				return failed("a 401 with headers %v", headerNames(got.header)), nil
			},
			wrong: map[string]verdict{"challenge-not-renamed": differs, "challenge-dropped": fail},
		}, {
			id: "retry-after", live: true,
			asks:    "whether Retry-After and the limiter's headers pass the gateway under their names",
			expects: "429 in our envelope with Retry-After, RateLimit and X-RateLimit-*",
			source:  proxyHeaders + ": none of them is in the table",
			ask:     askRetryAfter,
			wrong:   map[string]verdict{"retry-after-renamed": fail},
		}, {
			id: "query-names", live: true,
			asks:    "how the gateway passes query names that are not UTF-8 or badly escaped",
			expects: "the parameters beside them work: 200",
			source:  "two possible answers, both handled: the gateway passes them, or refuses the request with a 400 of its own and nothing is done, which DIFFERS",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				file, err := a.file(ctx)
				if err != nil {
					return finding{}, err
				}
				got, left, err := a.deleted(ctx, file, "?%ff=1&%fe=2&workspace_id="+a.workspace+"&%zz=%&%=")
				switch {
				case err != nil:
					return finding{}, err
				case got.status == http.StatusOK && left == 0:
					return passed("200"), nil
				case got.status == http.StatusBadRequest && left > 0:
					return differing("%s, and the file is still there", got), nil
				}
				return failed("%s, and %d versions of the file are left", got, left), nil
			},
			wrong: map[string]verdict{"odd-query-400": differs, "odd-query-404": fail},
		}, {
			id: "repeated-query", live: true,
			asks:    "whether the function sees that a query parameter was sent twice",
			expects: "404, and the file is still there",
			source:  "API Gateway Developer Guide, \"Input format of a Lambda function for proxy integration\": multiValueQueryStringParameters",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				file, err := a.file(ctx)
				if err != nil {
					return finding{}, err
				}
				got, left, err := a.deleted(ctx, file, "?workspace_id="+a.workspace+"&workspace_id="+a.workspace)
				if err == nil && (got.problem(http.StatusNotFound) != "" || left == 0) {
					return failed("%s, and %d versions of the file are left", got, left), nil
				}
				return passed("404, and the file is still there"), err
			},
			wrong: map[string]verdict{"query-sent-once": fail},
		}, {
			id: "gateway-throttle", stage: second,
			asks:    "how the gateway's own throttle answers",
			expects: "429 in our envelope with Retry-After: 1",
			source:  responseTypes + ": THROTTLED, as the template declares it",
			ask:     askThrottle,
			wrong:   map[string]verdict{"throttle-plain": fail, "throttle-never": fail},
		}, {
			id: "firewall-body", stage: second,
			asks:    "how the firewall answers a body over 64 KB",
			expects: "400 with the firewall's own envelope, without a request id",
			source:  "AWS WAF Developer Guide, \"Customized web requests and responses\"; and \"Handling oversize web request components\" for bodies over 64 KB",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				got, err := a.send(ctx, post(a.management, spaces(70<<10)))
				switch {
				case err != nil:
					return finding{}, err
				case got.status == http.StatusBadRequest && strings.Contains(got.body, `"the body is too large"`) && !strings.Contains(got.body, "request_id"):
					return passed("%s", got), nil
				case got.problem(http.StatusBadRequest) == "": // it passed the firewall, and was refused behind it
					return differing("%s", got), nil
				}
				return failed("%s", got), nil
			},
			wrong: map[string]verdict{"firewall-off": differs, "firewall-plain": fail},
		},
	}
}

// refused sends a request that must get one of our errors.
func (a *asker) refused(ctx context.Context, r request, status int) (finding, error) {
	got, err := a.send(ctx, r)
	if err != nil {
		return finding{}, err
	}
	if problem := got.problem(status); problem != "" {
		return failed("%s %s: %s: %s", r.method, r.path, problem, got), nil
	}
	return passed("%s", got), nil
}

func spaces(n int) []byte { return bytes.Repeat([]byte(" "), n) }

func (a *asker) tooLarge(ctx context.Context, size int) (finding, error) {
	got, err := a.send(ctx, post(a.management, spaces(size)))
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF):
		// The gateway may close the connection before all is sent.
		return differing("no answer could be read: %v", err), nil
	case err != nil:
		return finding{}, err
	case got.problem(http.StatusBadRequest) == "":
		return passed("%s", got), nil
	case got.status == http.StatusRequestEntityTooLarge:
		return differing("%s", got), nil
	}
	return failed("%s", got), nil
}

// deleted deletes a file with a query and reports what is left of it.
func (a *asker) deleted(ctx context.Context, file, query string) (answer, int, error) {
	got, err := a.send(ctx, remove(file+query, a.management))
	if err != nil {
		return answer{}, 0, err
	}
	left, err := a.stored(ctx, file)
	return got, left, err
}

func headerNames(h http.Header) []string {
	var names []string
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// maxBurst is the largest burst that a probe uses up.
const maxBurst = 200

func askRetryAfter(ctx context.Context, a *asker) (finding, error) {
	var burst int
	if _, err := fmt.Sscan(a.parameters["DeleteBurst"], &burst); err != nil || burst > maxBurst {
		return unasked("DeleteBurst is %s: more than %d deletions would be needed", a.parameters["DeleteBurst"], maxBurst), nil
	}
	key, err := a.key(ctx, "standard")
	if err != nil {
		return finding{}, err
	}
	requests := make([]request, burst+5) // slots come back meanwhile
	for i := range requests {
		requests[i] = remove("file_unknown", key)
	}
	answers, statuses, err := a.sendAll(ctx, requests)
	if err != nil {
		return finding{}, err
	}
	i := slices.IndexFunc(answers, func(r answer) bool { return r.status == http.StatusTooManyRequests })
	if i < 0 {
		return failed("of %d deletions at once none was refused: %v", len(requests), statuses), nil
	}
	got := answers[i]
	for _, name := range []string{"Retry-After", "Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
		if got.header.Get(name) == "" {
			return failed("a 429 without %s: %v", name, headerNames(got.header)), nil
		}
	}
	if problem := got.problem(http.StatusTooManyRequests); problem != "" {
		return failed("%s: %s", problem, got), nil
	}
	return passed("429 with Retry-After: %s", got.header.Get("Retry-After")), nil
}

func askThrottle(ctx context.Context, a *asker) (finding, error) {
	requests := make([]request, 60)
	for i := range requests {
		requests[i] = get(a.job, a.management)
	}
	var throttled answer
	// The gateway applies throttles on a best-effort basis.
	found, err := a.eventually(ctx, func() (bool, error) {
		answers, _, err := a.sendAll(ctx, requests)
		i := slices.IndexFunc(answers, func(r answer) bool { return r.status == http.StatusTooManyRequests })
		if i >= 0 {
			throttled = answers[i]
		}
		return i >= 0, err
	})
	switch {
	case err != nil:
		return finding{}, err
	case !found:
		return failed("a throttle of %s a second refused nothing of 60 requests at once", a.parameters["GetSyncJobThrottleRate"]), nil
	case throttled.problem(http.StatusTooManyRequests) != "" || throttled.header.Get("Retry-After") != "1":
		return failed("%s: %s, Retry-After: %s", throttled.problem(http.StatusTooManyRequests), throttled, throttled.header.Get("Retry-After")), nil
	}
	return passed("%s, Retry-After: 1", throttled), nil
}
