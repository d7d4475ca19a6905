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
)

// TestAnythingElseInARequest: whatever the query, the headers that an operation
// does not read and the id hold, the answer is the contract's. The requests go
// over a socket as they stand here, since no client sends them.
func TestAnythingElseInARequest(t *testing.T) {
	t.Parallel()
	if the.local == nil {
		t.Log("NOT REACHED at SIGNALBOX_BASE_URL: requests that a front end may refuse to read")
		return
	}
	n := newTenant(t)
	file := n.file(t, n.second)
	unknown := get(unknownJob).as(n.management).do(t).is(t, http.StatusNotFound)
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			odd := oddities{rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // the same requests in each run
			for _, r := range []request{get(odd.id(unknownJob)), post(bodyWith("")), del(odd.id("file_x"))} {
				odd.dress(r).raw(t).because(t, "missing")
				odd.dress(r).as(n.standard+marker).raw(t).because(t, "unknown_key")
				indistinguishable(t, odd.dress(unrouted(r.method, "/nothing/"+odd.id("x"))).raw(t), unknown)
			}
			indistinguishable(t, odd.dress(get(odd.id(unknownJob))).as(n.management).raw(t), unknown)
			odd.dress(del(odd.id("file_x"))).as(n.key(t, standardKey())).raw(t).is(t, http.StatusNotFound)
			// A workspace that is named twice is no workspace, whatever stands between.
			odd.dress(del(file).in(n.second)).and("workspace_id="+n.second).as(n.key(t, standardKey())).raw(t).is(t, http.StatusNotFound)
			odd.dress(get(n.job(t, "queued"))).as(n.management).raw(t).is(t, http.StatusOK)
			odd.dress(post(bodyWith(""))).as(n.management).raw(t).is(t, http.StatusCreated)
		})
	}
	del(file).in(n.second).as(n.management).do(t).is(t, http.StatusOK)
}

// oddities makes the parts of requests that no well-behaved client sends.
type oddities struct{ *rand.Rand }

func (o oddities) pick(from ...string) string { return from[o.IntN(len(from))] }

// bytes is text of any bytes that may stand in a target, broken escapes included.
func (o oddities) bytes(more string) string {
	var text strings.Builder
	for range o.IntN(6) {
		switch o.IntN(4) {
		case 0:
			text.WriteString(o.pick("%zz", "%", "%2", "%ff", "%fe", "%00", "%0d%0a", "%2f", "%ef%bf%bd", "%ed%a0%80", "%u0041", "+"))
		case 1:
			text.WriteString(o.pick("\x80", "\xc0\xaf", "\xc3", "\xed\xa0\x80", "\xf5", "\xff"))
		case 2:
			text.WriteString(o.pick(strings.Split(more, "")...))
		case 3:
			text.WriteString(o.pick("a", "A", "\x01", "\x7f", "ü", "[]", ";", `"`, `\`, "{id}", "..", "#", "|", strings.Repeat("x", 2000)))
		}
	}
	return text.String()
}

// id is none that exists: it begins as one may, and has a character too many.
func (o oddities) id(prefix string) string { return prefix + o.bytes(":@!$'()*,~") + "." }

// dress adds a query and headers, between what the request has.
func (o oddities) dress(r request) request {
	query := []string{"%ff=1", "%fe=2", "\xff", "%zz=%", "workspace_id%00=x", "WORKSPACE_ID=x", "requestContext=%7B%22requestId%22:1%7D"}
	for range o.IntN(4) {
		query = append(query, o.bytes("=&?/")+"=")
	}
	o.Shuffle(len(query), func(i, j int) { query[i], query[j] = query[j], query[i] })
	r = r.and(query[:o.IntN(len(query)+1)]...)
	for range o.IntN(6) {
		r = r.with(o.pick("X-Odd", "x-odd", "X-ODD", "Accept", "Cookie", "X-Request-Id", "Range", "TE", "X-Amzn-Trace-Id", "X-Forwarded-For", "requestContext", "a|b~", "\xff", "X-\xfe"),
			[]string{"\xff\xfe", "", "\xc3\x28\t", "chosen-by-caller", "\x80 \xff,\";=", strings.Repeat("x", 9000)}[o.IntN(6):]...)
	}
	return r
}

// and adds parameters to the query, as they stand.
func (r request) and(parameters ...string) request {
	separator := "?"
	if strings.Contains(r.path, "?") {
		separator = "&"
	}
	r.path += separator + strings.Join(parameters, "&")
	return r
}

// raw sends the request over a connection of its own, byte for byte, and checks
// what holds of every response.
func (r request) raw(t *testing.T) response {
	t.Helper()
	target, err := url.Parse(the.base)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := net.Dial("tcp", target.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s%s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", r.method, target.Path, r.path, target.Host, len(r.body))
	for name, values := range r.header {
		for _, value := range values {
			fmt.Fprintf(&head, "%s: %s\r\n", name, value)
		}
	}
	if _, err := io.WriteString(connection, head.String()+"\r\n"+r.body); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: r.method})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := response{got.StatusCode, got.Header, body}
	answer.checkEnvelope(t, r)
	return answer
}
