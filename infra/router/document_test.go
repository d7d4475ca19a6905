package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/secret"
)

// azureDocument is a document for gpt-5.2.
func azureDocument(endpoint string) string {
	text, _ := json.Marshal(map[string]string{"model_slug": "gpt-5.2", "api_key": "k", "endpoint_url": endpoint}) // strings
	return string(text)
}

// A line has a provider, a call, a stored key, and where it is sent, or the reason of a refusal.
// A URL is in a document for Azure. $A is a resource's host, $D a deployment's path, $V a version.
const documentCases = `
openai chat/completions sk-plain -
openai chat/completions {"api_key":"k","region":"eu"} eu.api.openai.com
fireworks chat/completions fw-plain /inference/v1/chat/completions
fireworks responses {"api_key":"k","region":"us"} us.api.fireworks.ai/inference/v1/responses
amazon-bedrock messages ABSK-plain /anthropic/v1/messages
amazon-bedrock messages {$K,"region":"eu-west-1"} bedrock-runtime.eu-west-1.amazonaws.com/anthropic/v1/messages
amazon-bedrock chat/completions {$K,"region":"us-east-1","sessionToken":"t"} bedrock-runtime.us-east-1.amazonaws.com/openai/v1/chat/completions
azure chat/completions https://$A$D/chat/completions$V $A$D/chat/completions$V
azure embeddings https://$A$D/chat/completions$V $A$D/embeddings$V
azure completions https://ACME.OpenAI.Azure.com:443$D/$V $A$D/completions$V
azure chat/completions https://a-1.services.ai.azure.com/deployments/gpt.5_2$V a-1.services.ai.azure.com/deployments/gpt.5_2/chat/completions$V
azure completions https://$A/openai/deployments/embeddings$V $A/openai/deployments/embeddings/completions$V
azure completions {"model_slug":"gpt-5.2","api_key":"k","model_id":"d","endpoint_url":"https://$A$D$V"} $A$D/completions$V
azure responses https://$A/openai/v1/ $A/openai/v1/responses
azure embeddings https://$A/openai/v1/responses?api-version=preview $A/openai/v1/embeddings?api-version=preview
azure responses https://$A/openai/responses$V $A/openai/responses$V
azure embeddings https://$A/models/chat/completions$V $A/models/embeddings$V
azure messages https://$A/anthropic/v1/messages $A/anthropic/v1/messages
azure responses [{$Z,"model_slug":"o4"},{$Z,"model_slug":"gpt-5.2","model_id":"gpt-5.2"}] $A/openai/v1/responses

azure messages https://$A/openai/v1 document_path
azure responses https://$A$D$V document_path
azure completions https://$A$D/completions document_path
azure responses https://$A/openai document_path
azure embeddings https://$A/models document_path
azure completions {"model_slug":"gpt-5.2","api_key":"k","model_id":"e","endpoint_url":"https://$A$D$V"} document_model
azure completions {"model_slug":"gpt-5.2","api_key":"k","model_id":"gpt-5.2","endpoint_url":"https://$A$D$V"} document_model
azure ../../speechtotext https://$A/openai/v1 document_path
azure responses {$Z,"model_slug":"gpt-5.2","model_id":"d"} document_model
azure responses {$Z,"model_slug":"GPT-5.2"} document_model
azure responses [{$Z,"model_slug":"gpt-5.2"},{$Z,"model_slug":"gpt-5.2"}] document_model
azure responses [] document_model
azure responses [null] document_member
azure responses {$Z} document_member
azure responses plain key_is_plain
anthropic messages {"api_key":"k"} key_is_document
openai chat/completions sk-é key_is_no_header
openai chat/completions {"api_key":"k"} document_region
openai chat/completions {"api_key":"k","region":"global"} document_region
openai chat/completions {"api_key":"k","region":"EU"} document_region
openai chat/completions {"api_key":"k","region":"evil.example/?"} document_region
openai chat/completions {"api_key":"k","Region":"eu"} document_member
openai chat/completions {"api_key":"k","region":"eu","base_url":"https://evil.example"} document_member
openai chat/completions {"api_key":"k","region":"eu","":"x"} document_member
openai chat/completions {"api_key":"","region":"eu"} document_member
openai chat/completions {"api_key":null,"region":"eu"} document_member
openai chat/completions {"region":"eu"} document_member
openai chat/completions {"api_key":"a\r\nHost:evil.example","region":"eu"} document_member
openai chat/completions {"api_key":"{\"a\":1}","region":"eu"} document_member
openai chat/completions {"api_key":"k","region":"us","region":"eu"} document_json
openai chat/completions {"api_key":"k","region":["eu"]} document_json
openai chat/completions {"api_key":1,"region":"eu"} document_json
openai chat/completions {"api_key":"k","region":"eu"}{} document_json
openai chat/completions {"api_key":"k","region":"eu" document_json
openai chat/completions [{"api_key":"k","region":"eu"}] document_json
amazon-bedrock responses ABSK-plain unknown_call
amazon-bedrock embeddings {$K,"region":"eu-west-1"} unknown_call
amazon-bedrock messages {$K,"region":"global"} document_region
amazon-bedrock messages {$K,"region":"eu-west-1","sessionToken":"t\r\nx"} document_member
amazon-bedrock messages {$K,"sessionToken":"t"} document_region
amazon-bedrock messages {"accessKeyId":"AKIDEXAMPLE","region":"eu-west-1"} document_member
amazon-bedrock messages {"accessKeyId":"ASIAEXAMPLE","secretAccessKey":"s","region":"eu-west-1"} document_member
`

// Hosts and paths that no document may have. \r, \u0020 and the like are JSON's.
const (
	badHosts = `http://$A HTTPS://$A //$A $A https://user@$A https://$A@evil.example https://evil.example#$A https://evil.example\\$A
		https://$A:8443 https://$A:443:443 https://$A: https://$A. https://a.$A https://.openai.azure.com https://-.openai.azure.com
		https://openai.azure.com https://evil.example https://$A.evil.example https://evilopenai.azure.com https://127.0.0.1 https://[::1]
		https://169.254.169.254 https://evil.example%2e.openai.azure.com https://acme\r\n.openai.azure.com https://acmé.openai.azure.com
		\u0020https://$A https://$L.openai.azure.com`
	badPaths = `/ /openai /openai/deployments $D/x/chat/completions $D/extensions/chat/completions /openai/v1/files /openai/v1/../v1
		/openai/%2e%2e/openai/v1 /openai/deployments/%2e%2e /openai/deployments/.. /openai/deployments/. /openai//v1 //openai/v1 /openai/v1//
		/openai\\v1 /openai/v1# /openai/v1?x=y /openai/v1$V&x=y /openai/v1?api-version= /openai/v1;x /openai/v1\r\nx:y /openai/v1\u0000
		/openai/v1\u0020 /speechtotext/v3.2/transcriptions /api/projects/p /OpenAI/v1 /openai/v1/chat/completions/chat/completions`
)

var abbreviations = strings.NewReplacer("$A", "acme.openai.azure.com", "$D", "/openai/deployments/d", "$V", "?api-version=2024-10-21", "$L", strings.Repeat("a", 64),
	"$K", `"accessKeyId":"AKIDEXAMPLE","secretAccessKey":"s"`, "$Z", `"api_key":"k","endpoint_url":"https://acme.openai.azure.com/openai/v1"`)

// Each form of a document is served where its provider has the call, and everything else is
// refused with what is wrong, without the document's words.
func TestDocuments(t *testing.T) {
	example, _ := exampleConfig(t)
	c, err := readText(t, example)
	kit.Must(t, err)
	check := func(provider, call, stored, want string) {
		t.Helper()
		to, err := c.Providers[provider].target(t.Context(), secret.New([]byte(stored)), call, "gpt-5.2")
		got := to.host + to.path
		if err != nil {
			got = fmt.Sprint(err)
			if refused := refusalOf(err); strings.Contains(fmt.Sprint(refused.cause), "evil") || refused.status/100 != 4 {
				t.Errorf("%s: %+v", stored, refused)
			}
		}
		if got != strings.TrimPrefix(want, "-") {
			t.Errorf("%s %s %s: %s, want %s", provider, call, stored, got, want)
		}
	}
	for line := range strings.Lines(abbreviations.Replace(documentCases)) {
		if f := strings.Fields(line); len(f) == 4 {
			if strings.HasPrefix(f[2], "https://") {
				f[2] = azureDocument(f[2])
			}
			check(f[0], f[1], f[2], f[3])
		}
	}
	inDocument := func(endpoint string) string {
		return strings.Replace(azureDocument("URL"), "URL", endpoint, 1)
	}
	for _, host := range strings.Fields(abbreviations.Replace(badHosts)) {
		check("azure", "responses", inDocument(host+"/openai/v1"), "document_host")
	}
	for _, path := range append(strings.Fields(abbreviations.Replace(badPaths)), "") {
		check("azure", "chat/completions", inDocument("https://acme.openai.azure.com"+path), "document_path")
	}
}

// The keys are those of AWS's own generator, aws-bedrock-token-generator 1.1.0, apart from the
// order of the query.
func TestBedrockKey(t *testing.T) {
	const start = "bedrock.amazonaws.com/?Action=CallWithBearerToken&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20261126%2Feu-central-1%2Fbedrock%2Faws4_request" +
		"&X-Amz-Date=20261126T200000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&Version=1&X-Amz-Signature="
	for token, rest := range map[string]string{
		"":                                  "f934f01eb466a52a89ed174bbc74428b25f75f1fc710a271f6bb51263f371a94",
		"FwoGZXIvYXdzEBYaDEXAMPLE//token==": "bdcb3017dd32b3494f8d6d053d2666e08941ff417f624f38a0bb7a44918cc142&X-Amz-Security-Token=FwoGZXIvYXdzEBYaDEXAMPLE%2F%2Ftoken%3D%3D",
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
