package contract_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/infra/local/record"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/routing"
)

// router reads the place as the platform's router does. Where calls are wanted, its
// own are recorded: infra/lint/iam judges RouterPolicy by them.
func (p place) router(t *testing.T) *routing.Reader {
	t.Helper()
	reach := p.endpoints
	if the.calls != nil {
		recorder := record.New(map[string]string{
			p.names.Access: "AccessTable", p.names.Credentials: "CredentialsTable", p.names.Sealing: "SealingKey",
		}, the.calls.note)
		var err error
		if reach, err = recorder.Endpoints("Router", p.endpoints); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := recorder.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	reader, err := routing.NewReader(
		dynamodb.NewFromConfig(p.config, func(o *dynamodb.Options) { o.BaseEndpoint = endpoint(reach.DynamoDB) }),
		kms.NewFromConfig(p.config, func(o *kms.Options) { o.BaseEndpoint = endpoint(reach.KMS) }),
		routing.Config{AccessTable: p.names.Access, CredentialsTable: p.names.Credentials, SealingKeyARNs: []string{p.names.Sealing}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	return reader
}

// What is posted to the API is what a provider receives from a router, byte for byte.
func TestARouterSendsTheKeyThatWasPosted(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	router := n.router(t)
	received := make(chan string, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			received <- key
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		received <- string(body)
	}))
	t.Cleanup(provider.Close)
	for name, posted := range map[string]string{
		"a token":           providerKey,
		"a service account": "{\n  \"type\": \"service_account\",\n  \"private_key\": \"-----BEGIN\\n" + marker + "\\n-----END\\n\"\n}\n",
		"any text":          " \t" + marker + "\r\n\u2028 \u00e9\U0001f511\"\\ ",
		"the longest":       strings.Repeat("k", 32768-len(marker)) + marker,
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(posted)
			if err != nil {
				t.Fatal(err)
			}
			workspace := n.createWorkspace(t)
			created := post(strings.TrimSuffix(key(string(text)), "}") + `,"is_byok_only":true,"workspace_id":"` + workspace + `"}`).as(n.management).do(t).created(t)
			reading, err := router.Read(t.Context(), n.account, ids.Workspace(workspace), routing.Request{
				Model: "m", APIKeyHash: hashOf(n.standard), Providers: []string{"openai"},
			})
			if err != nil || len(reading.Steps) != 1 || string(reading.Steps[0].Credential) != created.ID {
				t.Fatalf("planned %+v, %v", reading, err)
			}
			opened, err := reading.Open(t.Context(), reading.Steps[0])
			if err != nil {
				t.Fatal(err)
			}
			// A service account's key goes into a body; no header takes a line break.
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, provider.URL, strings.NewReader(string(opened.Reveal())))
			if err != nil {
				t.Fatal(err)
			}
			if name == "a token" {
				request.Header.Set("Authorization", "Bearer "+string(opened.Reveal()))
			}
			opened.Wipe()
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := answer.Body.Close(); err != nil {
				t.Error(err)
			}
			if got := <-received; got != posted {
				t.Errorf("the provider received %d bytes, not the %d that were posted", len(got), len(posted))
			}
		})
	}
}
