package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"pgregory.net/rapid"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/secret"
)

func exampleProviders(t *testing.T) map[string]*providerConfig {
	t.Helper()
	example, _ := exampleConfig(t)
	c, err := readText(t, example)
	kit.Must(t, err)
	return c.Providers
}

// azureDocument is a document for gpt-5.2, with other members after the URL.
func azureDocument(url string, others ...string) string {
	return `{"model_slug":"gpt-5.2","api_key":"k","endpoint_url":"` + url + `"` + strings.Join(append([]string{""}, others...), ",") + `}`
}

const (
	resource   = "https://acme.openai.azure.com"
	deployment = resource + "/openai/deployments/d"
	dated      = "?api-version=2024-10-21"
)

// Each form of a document is served where its provider has the call, and everything else is
// refused with what is wrong.
func TestDocuments(t *testing.T) {
	providers := exampleProviders(t)
	aws := func(members string) string {
		return `{"accessKeyId":"AKIDEXAMPLE","secretAccessKey":"s",` + members + `}`
	}
	for _, c := range []struct{ provider, call, stored, want string }{
		{"openai", "chat/completions", "sk-plain", ""},
		{"openai", "chat/completions", `{"api_key":"k","region":"eu"}`, "eu.api.openai.com"},
		{"openai", "messages", ` {"region":"us","api_key":"k"}`, "us.api.openai.com"},
		{"fireworks", "responses", `{"api_key":"k","region":"us"}`, "us.api.fireworks.ai/inference/v1/responses"},
		{"fireworks", "chat/completions", "fw-plain", "/inference/v1/chat/completions"},
		{"amazon-bedrock", "chat/completions", "ABSK-plain", "/openai/v1/chat/completions"},
		{"amazon-bedrock", "messages", aws(`"region":"eu-central-1"`), "bedrock-runtime.eu-central-1.amazonaws.com/anthropic/v1/messages"},
		{"amazon-bedrock", "responses", aws(`"region":"us-east-1","sessionToken":"t"`), "bedrock-runtime.us-east-1.amazonaws.com/openai/v1/responses"},
		{"azure", "chat/completions", azureDocument(deployment + "/chat/completions" + dated), "acme.openai.azure.com/openai/deployments/d/chat/completions" + dated},
		{"azure", "embeddings", azureDocument(deployment+"/chat/completions"+dated, `"model_id":"d"`), "acme.openai.azure.com/openai/deployments/d/embeddings" + dated},
		{"azure", "completions", azureDocument("https://ACME.OpenAI.Azure.com:443/openai/deployments/embeddings"), "acme.openai.azure.com/openai/deployments/embeddings/completions"},
		{"azure", "chat/completions", azureDocument("https://a-1.services.ai.azure.com/deployments/gpt.5_2/"), "a-1.services.ai.azure.com/deployments/gpt.5_2/chat/completions"},
		{"azure", "responses", azureDocument(resource+"/openai/v1/", `"model_id":"gpt-5.2"`), "acme.openai.azure.com/openai/v1/responses"},
		{"azure", "chat/completions", azureDocument("https://acme.cognitiveservices.azure.com/openai/v1/responses?api-version=preview"), "acme.cognitiveservices.azure.com/openai/v1/chat/completions?api-version=preview"},
		{"azure", "responses", azureDocument("https://acme.cognitiveservices.azure.com/openai/responses?api-version=2025-04-01-preview"), "acme.cognitiveservices.azure.com/openai/responses?api-version=2025-04-01-preview"},
		{"azure", "embeddings", azureDocument("https://acme.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview"), "acme.services.ai.azure.com/models/embeddings?api-version=2024-05-01-preview"},
		{"azure", "messages", azureDocument("https://acme.services.ai.azure.com/anthropic/v1/messages"), "acme.services.ai.azure.com/anthropic/v1/messages"},
		{"azure", "responses", "[" + strings.ReplaceAll(azureDocument(deployment), "gpt-5.2", "o4") + "," + azureDocument(resource+"/openai/v1") + "]", "acme.openai.azure.com/openai/v1/responses"},

		{"azure", "chat/completions", "plain", "key_is_plain: "},
		{"anthropic", "messages", `{"api_key":"k"}`, "key_is_document: "},
		{"openai", "chat/completions", "sk-\n", "key_is_no_header: "},
		{"amazon-bedrock", "embeddings", "ABSK-plain", "unknown_call: "},
		{"amazon-bedrock", "embeddings", aws(`"region":"eu-central-1"`), "unknown_call: "},
		{"openai", "chat/completions", `{"api_key":"k"}`, "document_region: "},
		{"openai", "chat/completions", `{"api_key":"k","region":"global"}`, "document_region: "},
		{"openai", "chat/completions", `{"api_key":"k","region":"EU"}`, "document_region: "},
		{"openai", "chat/completions", `{"api_key":"k","region":"evil.example/?"}`, "document_region: "},
		{"openai", "chat/completions", `{"api_key":"k","Region":"eu"}`, "document_member: "},
		{"openai", "chat/completions", `{"api_key":"k","region":"eu","base_url":"https://evil.example"}`, "document_member: "},
		{"openai", "chat/completions", `{"api_key":"k","region":"eu","":"x"}`, "document_member: "},
		{"openai", "chat/completions", `{"api_key":"","region":"eu"}`, "document_member: api_key is empty"},
		{"openai", "chat/completions", `{"api_key":null,"region":"eu"}`, "document_member: api_key is empty"},
		{"openai", "chat/completions", `{"region":"eu"}`, "document_member: api_key is missing"},
		{"openai", "chat/completions", `{"api_key":"a\r\nHost: evil.example","region":"eu"}`, "document_member: "},
		{"openai", "chat/completions", `{"api_key":"{\"a\":1}","region":"eu"}`, "document_member: "},
		{"openai", "chat/completions", `{"api_key":"k","region":"us","region":"eu"}`, "document_json: "},
		{"openai", "chat/completions", `{"api_key":"k","region":["eu"]}`, "document_json: "},
		{"openai", "chat/completions", `{"api_key":1,"region":"eu"}`, "document_json: "},
		{"openai", "chat/completions", `{"api_key":"k","region":"eu"}{}`, "document_json: "},
		{"openai", "chat/completions", `{"api_key":"k","region":"eu"`, "document_json: "},
		{"openai", "chat/completions", `[{"api_key":"k","region":"eu"}]`, "document_json: "},
		{"azure", "chat/completions", "[null]", "document_member: "},
		{"azure", "chat/completions", "[]", "document_model: "},
		{"azure", "chat/completions", "[" + azureDocument(deployment) + "," + azureDocument(deployment) + "]", "document_model: "},
		{"azure", "chat/completions", strings.ReplaceAll(azureDocument(deployment), "gpt-5.2", "GPT-5.2"), "document_model: "},
		{"azure", "chat/completions", `{"api_key":"k","endpoint_url":"` + deployment + `"}`, "document_member: model_slug is missing"},
		{"azure", "chat/completions", azureDocument(resource+"/openai/v1", `"model_id":"d"`), "document_model: model_id must be"},
		{"azure", "responses", azureDocument(deployment + dated), "document_path: endpoint_url has no /v1/responses"},
		{"azure", "messages", azureDocument(resource + "/openai/v1"), "document_path: "},
		{"azure", "../../speechtotext", azureDocument(resource + "/openai/v1"), "document_path: "},
		{"amazon-bedrock", "messages", aws(`"region":"global"`), "document_region: "},
		{"amazon-bedrock", "messages", aws(`"sessionToken":"t"`), "document_region: "},
		{"amazon-bedrock", "messages", `{"accessKeyId":"AKIDEXAMPLE","region":"eu-central-1"}`, "document_member: secretAccessKey is missing"},
		{"amazon-bedrock", "messages", `{"secretAccessKey":"s","region":"eu-central-1"}`, "document_member: accessKeyId is missing"},
		{"amazon-bedrock", "messages", `{"accessKeyId":"ASIAEXAMPLE","secretAccessKey":"s","region":"eu-central-1"}`, "document_member: sessionToken is missing"},
	} {
		to, err := providers[c.provider].target(t.Context(), secret.New([]byte(c.stored)), c.call, "gpt-5.2")
		got := to.host + to.path
		if err != nil {
			refused := err.(*refusal) //nolint:errorlint // no other is returned
			got = refused.reason + ": "
			if refused.cause != nil {
				got += refused.cause.Error()
			}
		}
		if isRefused := strings.Contains(c.want, ": "); got != c.want && !isRefused || isRefused && !strings.HasPrefix(got, c.want) || strings.Contains(got, "evil") {
			t.Errorf("%s %s %s: %s, want %s", c.provider, c.call, c.stored, got, c.want)
		}
	}
	for _, endpoint := range []string{
		"http://acme.openai.azure.com/openai/v1", "HTTPS://acme.openai.azure.com/openai/v1", "//acme.openai.azure.com/openai/v1", "acme.openai.azure.com/openai/v1", " " + resource + "/openai/v1",
		"https://user@acme.openai.azure.com/openai/v1", "https://acme.openai.azure.com@evil.example/openai/v1", "https://evil.example#acme.openai.azure.com/openai/v1", `https://evil.example\\.openai.azure.com/openai/v1`,
		"https://acme.openai.azure.com:8443/openai/v1", "https://acme.openai.azure.com:443:443/openai/v1", "https://acme.openai.azure.com:/openai/v1", "https://acme.openai.azure.com./openai/v1", "https://a.b.openai.azure.com/openai/v1",
		"https://openai.azure.com/openai/v1", "https://.openai.azure.com/openai/v1", "https://-.openai.azure.com/openai/v1", "https://evil.example/openai/v1", "https://acme.openai.azure.com.evil.example/openai/v1", "https://evilopenai.azure.com/openai/v1",
		"https://127.0.0.1/openai/v1", "https://[::1]/openai/v1", "https://169.254.169.254/models", "https://evil.example%2e.openai.azure.com/openai/v1", `https://acme\r\n.openai.azure.com/openai/v1`, "https://acmé.openai.azure.com/openai/v1", "https://" + strings.Repeat("a", 64) + ".openai.azure.com/openai/v1",
	} {
		_, err := providers["azure"].target(t.Context(), secret.New([]byte(azureDocument(endpoint))), "chat/completions", "gpt-5.2")
		if err == nil || err.Error() != "document_host" {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	for _, path := range []string{
		"", "/", "/openai", "/openai/deployments", "/openai/deployments/", "/openai/deployments/d/x/chat/completions", "/openai/deployments/d/extensions/chat/completions", "/openai/v1/files", "/openai/v1/../v1",
		"/openai/%2e%2e/openai/v1", "/openai/deployments/%2e%2e", "/openai/deployments/..", "/openai/deployments/.", "/openai//v1", "//openai/v1", "/openai/v1//", `/openai\\v1`, "/openai/v1#", "/openai/v1?x=y", "/openai/v1?api-version=1&x=y",
		"/openai/v1?api-version=", "/openai/v1;x", `/openai/v1\r\nx: y`, `/openai/v1\u0000`, "/openai/v1 ", "/speechtotext/v3.2/transcriptions", "/api/projects/p", "/OpenAI/v1", "/openai/v1/chat/completions/chat/completions",
	} {
		to, err := providers["azure"].target(t.Context(), secret.New([]byte(azureDocument(resource+path))), "chat/completions", "gpt-5.2")
		if err == nil || err.Error() != "document_path" {
			t.Errorf("%s: %v, %v", path, to.path, err)
		}
	}
}

// The command shows what becomes of a file, by the same code, and no key.
func TestShowDocument(t *testing.T) {
	for _, c := range []struct{ args, stored, want string }{
		{"-provider azure -model gpt-5.2", azureDocument(deployment+dated) + "\n", "chat/completions  https://acme.openai.azure.com/openai/deployments/d/chat/completions" + dated},
		{"-provider azure -model gpt-5.2", azureDocument(deployment + dated), "responses         refused: document_path: endpoint_url has no /v1/responses\n"},
		{"-provider amazon-bedrock", `{"accessKeyId":"AKIDEXAMPLE","secretAccessKey":"k","region":"eu-west-1"}`, "https://bedrock-runtime.eu-west-1.amazonaws.com/anthropic/v1/messages\n"},
		{"-provider fireworks", "k", "responses         the host of the cluster fireworks, /inference/v1/responses\n"},
		{"-provider openai", `{"api_key":"k"}`, "no call can be served"},
		{"-provider azure", azureDocument(deployment), "need one"},
		{"-provider mistral", "k", "amazon-bedrock, anthropic, azure, fireworks, openai"},
	} {
		var out strings.Builder
		err := showDocument(t.Context(), "router.yaml", strings.Fields(c.args), strings.NewReader(c.stored), &out)
		if got := fmt.Sprint(out.String(), err); !strings.Contains(got, c.want) {
			t.Errorf("%s of %s: %s", c.args, c.stored, got)
		}
	}
}

// However a URL is changed, an accepted one has a host and a path of the configuration.
func TestEachAcceptedDocumentStaysInside(t *testing.T) {
	azure := exampleProviders(t)["azure"]
	host := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?\.(openai|cognitiveservices|services\.ai)\.azure\.com$`)
	path := regexp.MustCompile(`^/((openai/)?deployments/[A-Za-z0-9][\w.-]*/(chat/completions|completions|embeddings)|openai/v1/(chat/completions|completions|embeddings|responses)|openai/responses|models/(chat/completions|embeddings)|anthropic/v1/messages)(\?api-version=[A-Za-z0-9.-]+)?$`)
	good := []string{deployment + "/chat/completions" + dated, resource + "/openai/v1", "https://a.services.ai.azure.com/models", "https://a.services.ai.azure.com/anthropic/v1/messages"}
	parts := []string{
		"https://", "http://", ".openai.azure.com", "evil.example", ":443", ":80", "@", "#", `\`, "%2e%2e", "%00", "/..", ".", "/", "//", "/openai", "/v1", "/deployments/", "d", "-",
		"/chat/completions", "/messages", "?api-version=1", "&", "?", ";", "\r\n", "\x00", "é", " ", "{", "[::1]", "127.0.0.1", "*",
	}
	accepted := 0
	rapid.Check(t, func(r *rapid.T) {
		endpoint := rapid.SampledFrom(good).Draw(r, "good")
		for range rapid.IntRange(0, 2).Draw(r, "changes") {
			at := rapid.IntRange(0, len(endpoint)).Draw(r, "at")
			endpoint = endpoint[:at] + rapid.SampledFrom(parts).Draw(r, "part") + endpoint[at:]
		}
		text, err := json.Marshal(map[string]string{"model_slug": "m", "api_key": "k", "endpoint_url": endpoint})
		kit.Must(t, err)
		to, err := azure.target(context.Background(), secret.New(text), rapid.SampledFrom(served).Draw(r, "call"), "m")
		if err != nil {
			return
		}
		if accepted++; !host.MatchString(to.host) || !path.MatchString(to.path) || string(to.key.Reveal()) != "k" {
			r.Errorf("%q is sent to %q %q", endpoint, to.host, to.path)
		}
	})
	if accepted == 0 {
		t.Error("nothing was accepted")
	}
}

// The keys are those of AWS's own generator, aws-bedrock-token-generator 1.1.0, apart from the
// order of the query.
func TestBedrockKey(t *testing.T) {
	const start = "bedrock.amazonaws.com/?Action=CallWithBearerToken&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20261126%2Feu-central-1%2Fbedrock%2Faws4_request" +
		"&X-Amz-Date=20261126T200000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
	for token, rest := range map[string]string{
		"":                                  "&X-Amz-Signature=f934f01eb466a52a89ed174bbc74428b25f75f1fc710a271f6bb51263f371a94&Version=1",
		"FwoGZXIvYXdzEBYaDEXAMPLE//token==": "&X-Amz-Security-Token=FwoGZXIvYXdzEBYaDEXAMPLE%2F%2Ftoken%3D%3D&X-Amz-Signature=bdcb3017dd32b3494f8d6d053d2666e08941ff417f624f38a0bb7a44918cc142&Version=1",
	} {
		c := aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", SessionToken: token}
		key, err := bedrockKey(t.Context(), c, "eu-central-1", time.Date(2026, 11, 26, 20, 0, 0, 0, time.UTC))
		kit.Must(t, err)
		coded, isKey := strings.CutPrefix(string(key.Reveal()), "bedrock-api-key-")
		text, err := base64.StdEncoding.DecodeString(coded)
		kit.Must(t, err)
		got, err := url.Parse(string(text))
		kit.Must(t, err)
		want, err := url.Parse(start + rest)
		if kit.Must(t, err); !isKey || got.Path != want.Path || !reflect.DeepEqual(got.Query(), want.Query()) {
			t.Errorf("%s, want %s", text, start+rest)
		}
	}
}
