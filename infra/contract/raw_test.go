package contract_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
)

// TestAnythingElseInARequest sends requests with random queries, headers and ids that
// HTTP clients do not send. The responses follow the contract. A path with a broken
// escape gets the gateway's 400.
func TestAnythingElseInARequest(t *testing.T) {
	t.Parallel()
	if the.state == "" {
		t.Log("NOT REACHED at SIGNALBOX_BASE_URL: requests that a front end may refuse to read")
		return
	}
	n := newTenant(t)
	file := n.file(t, n.second)
	unknown := get(unknownJob).As(n.management).Do(t).Is(t, http.StatusNotFound)
	raw(t, del(file+"%zz").In(n.second).As(n.management)).Is(t, http.StatusBadRequest)
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			g := generator{rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // the same requests in each run
			standard := func() string { return n.StandardKey(t, "") }
			for _, r := range []request{get(g.id(unknownJob)), post(bodyWith("")), del(g.id("file_x"))} {
				raw(t, g.extend(r)).Because(t, "missing")
				raw(t, g.extend(r).As(n.standard+testkit.Marker)).Because(t, "unknown_key")
				indistinguishable(t, raw(t, g.extend(unrouted(r.Method, "/nothing/"+g.id("x")))), unknown)
			}
			indistinguishable(t, raw(t, g.extend(get(g.id(unknownJob))).As(n.management)), unknown)
			raw(t, g.extend(del(g.id("file_x"))).As(standard())).Is(t, http.StatusNotFound)
			// A repeated workspace_id is none, whatever parameters are in between.
			raw(t, g.extend(del(file).In(n.second)).In(n.second).As(standard())).Is(t, http.StatusNotFound)
			raw(t, g.extend(get(n.job(t, "queued"))).As(n.management)).Is(t, http.StatusOK)
			raw(t, g.extend(post(bodyWith(""))).As(n.management)).Is(t, http.StatusCreated)
		})
	}
	del(file).In(n.second).As(n.management).Do(t).Is(t, http.StatusOK)
}

// generator makes random parts of requests.
type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

// bytes returns bytes that may be in a target: more, escapes, invalid UTF-8.
func (g generator) bytes(more string) string {
	var text strings.Builder
	for range g.IntN(6) {
		switch g.IntN(4) {
		case 0:
			text.WriteString(g.pick("%ff", "%fe", "%00", "%0d%0a", "%2f", "%ef%bf%bd", "%ed%a0%80", "+"))
		case 1:
			text.WriteString(g.pick("\x80", "\xc0\xaf", "\xc3", "\xed\xa0\x80", "\xf5", "\xff"))
		case 2:
			text.WriteString(g.pick(strings.Split(more, "")...))
		case 3:
			text.WriteString(g.pick("a", "A", "ü", "[]", ";", `"`, `\`, "{id}", "..", "#", "|", strings.Repeat("x", 2000)))
		}
	}
	return text.String()
}

// id returns a malformed id that begins like a valid one.
func (g generator) id(prefix string) string { return prefix + g.bytes(":@!$'()*,~") + "." }

// extend adds query parameters and headers that no operation reads.
func (g generator) extend(r request) request {
	query := []string{"%ff=1", "%fe=2", "\xff", "%zz=%", "workspace_id%00=x", "WORKSPACE_ID=x", "requestContext=%7B%22requestId%22:1%7D"}
	for range g.IntN(4) {
		query = append(query, g.bytes("=&?/")+"=")
	}
	g.Shuffle(len(query), func(i, j int) { query[i], query[j] = query[j], query[i] })
	r = r.Query(query[:g.IntN(len(query)+1)]...)
	names := []string{"X-Odd", "x-odd", "X-ODD", "Accept", "Cookie", "X-Request-Id", "Range", "TE", "X-Amzn-Trace-Id", "X-Forwarded-For",
		"requestContext", "a|b~"}
	values := []string{"\xff\xfe", "", "\xc3\x28\t", "chosen-by-caller", "\x80 \xff,\";=", strings.Repeat("x", 9000)}
	for range g.IntN(6) {
		r = r.With(g.pick(names...), values[g.IntN(len(values)):]...)
	}
	return r
}

// raw sends the request byte for byte, over its own connection, and checks the response
// with checkEnvelope.
func raw(t *testing.T, r request) response {
	t.Helper()
	target, err := url.Parse(the.client.Base)
	testkit.Must(t, err)
	connection, err := net.Dial("tcp", target.Host)
	testkit.Must(t, err)
	defer func() { _ = connection.Close() }()
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s%s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", r.Method, target.Path, r.Path, target.Host, len(r.Body))
	for name, values := range r.Header {
		for _, value := range values {
			fmt.Fprintf(&head, "%s: %s\r\n", name, value)
		}
	}
	_, err = io.WriteString(connection, head.String()+"\r\n"+r.Body)
	testkit.Must(t, err)
	res, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: r.Method})
	testkit.Must(t, err)
	body, err := io.ReadAll(res.Body)
	testkit.Must(t, err)
	got := response{Status: res.StatusCode, Header: res.Header, Body: body}
	checkEnvelope(t, r, got)
	return got
}
