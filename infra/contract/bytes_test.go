package contract_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/syncjobs"
)

// slack is by how many bytes a line may differ: durations and sizes vary in length.
const slack = 8

// TestRequestBytes measures what a request of each kind logs and answers. The
// table of costs in operations/cost.md is computed from the file, and `make prove`
// compares it with what AWS charges.
func TestRequestBytes(t *testing.T) {
	t.Parallel()
	if the.state == "" {
		t.Skip("the logs are read from the state folder of the suite's own edition")
	}
	text, err := os.ReadFile("../request-bytes.json")
	testkit.Must(t, err)
	var expected map[string]map[string]int
	testkit.Must(t, json.Unmarshal(text, &expected))
	n := newTenant(t)
	body := bodyWith(`,"name":"openai of the search team"`)
	for kind, q := range map[string]request{
		"getSyncJob":               get(n.job(t, syncjobs.Succeeded)).As(n.management),
		"createByokKey":            post(body).As(n.management),
		"createByokKey idempotent": post(body).As(n.management).Idempotent(idempotencyKey),
		"deleteFile":               del(n.file(t, n.workspace)).As(n.standard),
	} {
		t.Run(kind, func(t *testing.T) {
			r := q.Do(t)
			got := logged(t, r.Header.Get("X-Request-Id"), expected[kind]["audit"] > 0)
			got["response"] = len("HTTP/1.1 200 OK\r\n\r\n") + len(r.Body)
			for name, value := range r.Header {
				got["response"] += len(name) + len(": ") + len(value[0]) + len("\r\n")
			}
			for _, part := range []string{"request", "audit", "response"} {
				if difference := got[part] - expected[kind][part]; difference < -slack || difference > slack {
					t.Errorf("%s of %d bytes, and infra/request-bytes.json says %d", part, got[part], expected[kind][part])
				}
			}
		})
	}
}

// logged returns the bytes of a request's log lines, by their messages.
func logged(t *testing.T, requestID string, audited bool) map[string]int {
	t.Helper()
	request := len(logLine(t, the.state, requestID, "request"))
	if !audited {
		return map[string]int{"request": request, "audit": 0}
	}
	return map[string]int{"request": request, "audit": len(logLine(t, the.state, requestID, "audit"))}
}

// logLine returns the line with the message that a function wrote of a request, once
// it is there.
func logLine(t *testing.T, state, requestID, message string) json.RawMessage {
	t.Helper()
	for timeout := time.Now().Add(time.Minute); time.Now().Before(timeout); time.Sleep(20 * time.Millisecond) {
		if line := linesOf(t, state, requestID)[message]; line != "" {
			return json.RawMessage(line)
		}
	}
	t.Fatalf("no line %q of request %s", message, requestID)
	return nil
}

// linesOf returns a request's log lines by their messages.
func linesOf(t *testing.T, state, requestID string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "logs", "*Function.log"))
	testkit.Must(t, err)
	lines := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // the suite's own state folder
		testkit.Must(t, err)
		for line := range strings.Lines(string(content)) {
			var fields struct{ Message, Request_ID string } //nolint:revive,staticcheck // as in the log
			if strings.Contains(line, requestID) && json.Unmarshal([]byte(line), &fields) == nil {
				lines[fields.Message] = strings.TrimSuffix(line, "\n")
			}
		}
	}
	return lines
}
