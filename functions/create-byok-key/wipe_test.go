package main

import (
	"encoding/base64"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"signalbox.dev/infra/test/cases"
	"signalbox.dev/infra/test/kit"
)

// After the answer the heap has no copy of a provider key that our code made, not even as
// garbage. aws-lambda-go and net/http, which this test does without, leave some; so does the
// hash behind an idempotency key, whose last block holds up to 63 bytes.
func TestNoCopyOfAProviderKeyIsLeft(t *testing.T) {
	if !kit.Uninterrupted(t) {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // collected memory might have held one
	cases.OnModel(t, "", 0, leavesNoCopy)
}

func leavesNoCopy(env *cases.Environment) {
	t, function := env.TB(), build(env.FunctionEnvironment())
	keys := map[string]kit.Masked{}
	for length, idempotency := range map[int]string{40: "", 1000: `,"Idempotency-Key":["k"]`} {
		plain, escaped := kit.NewMasked(length), kit.NewMasked(length)
		keys[fmt.Sprint("plain ", length)], keys[fmt.Sprint("escaped ", length)] = plain, escaped
		create(t, env.Tenant.Management, function, plain.Append, idempotency)
		create(t, env.Tenant.Management, function, escaped.AppendEscaped, strings.Replace(idempotency, `"k"`, `"l"`, 1))
	}
	kept := kit.NewMasked(40)
	held := kept.Append(nil)
	dump := kit.Heap(t)
	if kept.Copies(dump) == 0 {
		t.Fatal("the dump of the heap shows nothing")
	}
	clear(held)
	for name, key := range keys {
		if n := key.Copies(dump); n > 0 {
			t.Errorf("%s: %d copies are left", name, n)
		}
	}
}

// create sends a request with the key, in base64, and leaves no copy.
func create(t testing.TB, token string, function lambda.Handler, appendKey func([]byte) []byte, header string) {
	t.Helper()
	body := append(make([]byte, 0, 8<<10), `{"key":"`...) // never grown, because growing copies
	body = append(appendKey(body), `","provider":"openai"}`...)
	start := `{"resource":"/api/v1/byok","httpMethod":"POST","multiValueHeaders":{"Authorization":["Bearer ` + token +
		`"],"Content-Type":["application/json"]` + header + `},"isBase64Encoded":true,"body":"`
	event := append(make([]byte, 0, len(start)+2*len(body)+100), start...)
	event = append(base64.StdEncoding.AppendEncode(event, body), `"}`...)
	clear(body)
	answer, err := function.Invoke(t.Context(), event)
	if err != nil || !strings.HasPrefix(string(answer), `{"statusCode":201`) {
		t.Errorf("%v: %s", err, answer)
	}
}
