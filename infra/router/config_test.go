package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"signalbox.dev/infra/test/kit"
)

// exampleConfig returns the example, and writes the files that it names into a folder.
func exampleConfig(t *testing.T) (text, folder string) {
	t.Helper()
	folder = t.TempDir()
	write(t, filepath.Join(folder, "openai"), "sk-openai\r\n")
	write(t, filepath.Join(folder, "anthropic"), "sk-anthropic")
	write(t, filepath.Join(folder, "name-keys"), newNameKey()+"\n")
	return strings.ReplaceAll(readFile(t, "router.yaml"), "/run/secrets", folder), folder
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // a shipped one
	kit.Must(t, err)
	return string(text)
}

func readText(t *testing.T, text string) (config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "router.yaml")
	write(t, file, text)
	return readConfig(file)
}

func TestConfig(t *testing.T) {
	example, folder := exampleConfig(t)
	c, err := readText(t, example)
	kit.Must(t, err)
	for name, want := range map[string]string{"openai": "sk-openai", "azure": "", "anthropic": "sk-anthropic"} {
		if got := string(c.Providers[name].key.Reveal()); got != want {
			t.Errorf("%s: the key %q", name, got)
		}
	}
	for change, complaint := range map[string]string{
		"127.0.0.1:9180=0.0.0.0:9180":                 "loopback",
		"127.0.0.1:9180=":                             "listen",
		"127.0.0.1:9180='unix:'":                      "listen",
		"key/0000=alias/0000":                         "not the ARN of a KMS key",
		"header: api-key=header: 'api-key '":          "not a header's name",
		"AccessTableName=accessTableName":             "accessTableName",
		"  AccessTableName=  OtherSealingKeyArn":      "AccessTableName is missing",
		"  CredentialsTableName=  OtherSealingKeyArn": "CredentialsTableName is missing",
		"  SealingKeyArn=  OtherSealingKeyArn":        "SealingKeyArn is missing",
		"[anthropic]=[]":                              "no providers",
		"  gpt-5.2: [openai, azure]\n  claude-opus-4.5: [anthropic]\n  openai.gpt-oss-120b-1:0: [amazon-bedrock]\n  accounts/fireworks/models/kimi-k3: [fireworks]\n=": "at least one",
		"[anthropic]=[mistral]":                               `"mistral", which is not under providers`,
		"  azure:=  azzure:":                                  `"azzure" is not a provider`,
		"\nproviders:=\n---\nproviders:":                      "more than one",
		"max_connections: 1024=max_connections: 0":            "max_connections",
		"outage_status: 424=outage_status: 200":               "outage_status",
		"/name-keys=/none":                                    "name_keys_file: open",
		"/name-keys=/openai":                                  "name_keys_file: line 1",
		"key_file: =key_file: /none":                          `"openai": key_file: open`,
		"plan_age: 1h=plan_age: 0s":                           "plan_age",
		"max_body_bytes: 4194304=max_body_bytes: 0":           "max_body_bytes",
		"plain: refuse=plain: refused":                        "plain: must be refuse",
		"paths: {/openai/v1:=paths: {/openai/*:":              `"/openai/*" is not a path`,
		"/anthropic/v1: [messages]}=/anthropic/v1: [chat]}":   `"chat" is not one of`,
		"/openai: [responses]=/../openai: [responses]":        `"/../openai" is not a path`,
		"      region: region=      url: region":              "document: it needs key",
		"      url: endpoint_url=":                            "document: it needs key",
		"regions: [us, eu,=regions: [us.evil/, eu,":           `"us.evil/" is not one label`,
		"hosts: ['*.api.openai.com']=hosts: [api.openai.com]": "one host with a *",
		"hosts: ['*.api.openai.com']=hosts: ['*.com']":        `"*.com" is not a host`,
	} {
		from, to, _ := strings.Cut(change, "=")
		changed := strings.Replace(example, from, to, 1)
		if _, err := readText(t, changed); changed == example || err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: %v", change, err)
		}
	}
	for _, key := range []string{"", "\n", "sk-a\nsk-b\n", `{"type":"service_account"}`} {
		write(t, filepath.Join(folder, "openai"), key)
		if _, err := readText(t, example); err == nil || !strings.Contains(err.Error(), `"openai": key_file`) || strings.Contains(err.Error(), "sk-") {
			t.Errorf("a platform key of %q: %v", key, err)
		}
	}
}

// Each of these changes makes two files that do not fit, and `router check` says where.
func TestCheck(t *testing.T) {
	folder := t.TempDir()
	router, envoy := readFile(t, "router.yaml"), readFile(t, "envoy.yaml")
	kit.Must(t, checkFiles("router.yaml", "envoy.yaml"))
	for _, c := range []struct{ from, to, complaint string }{
		{"header: x-api-key", "header: x-new-key", "/open lacks x-new-key, the header of anthropic"},
		{"header: x-api-key", "header: user-agent", "a client's own would reach anthropic"},
		{"  anthropic:\n", "  mistral:\n  anthropic:\n", "no cluster has the name mistral"},
		{"listen: 127.0.0.1:9180", "listen: 127.0.0.1:9181", "is at [127.0.0.1:9180], and listen is 127.0.0.1:9181"},
		{"max_body_bytes: 4194304", "max_body_bytes: 4194305", "the route for 413 must start at 4194306"},
		{"max_body_bytes: 4194304", "max_body_bytes: 1000", "each max_request_bytes must be max_body_bytes, 1000"},
		{"outage_status: 424", "", "outage_status 503"},
		{"  amazon-bedrock:", "  bedrock:", "router.yaml: "},
		{"max_connections: 1024", "max_connections: 527", "max_connections must be at least 528"},
		{"user_id_header: x-signalbox-user", "user_id_header: x-user", "/plan lacks x-user, the user_id_header"},
		{"{prefix: x-signalbox-, ignore_case: true}", "{prefix: x-other-, ignore_case: true}", "does not remove a client's own x-signalbox-user"},
		{"    transport_socket: *tls\n", "", "the cluster azure has no TLS"},
		{"    transport_socket:\n      name: envoy", "    transport_socket:\n      name: x", "the cluster documents has no TLS"},
		{"thresholds: [{max_connections: 512, ", "thresholds: [{", "max_connections must be at least 1040"},
		{"codec_type: HTTP1", "codec_type: AUTO", "codec_type: HTTP1"},
		{"common_http_protocol_options:\n", "common_tls_context: {alpn_protocols: [h2, http/1.1]}\n          common_http_protocol_options:\n", "alpn_protocols"},
		{"headers_to_add: [{key: x-signalbox-documents", "headers_to_add: [{key: x", "for the documents of azure"},
	} {
		one, other := strings.Replace(router, c.from, c.to, 1), strings.Replace(envoy, c.from, c.to, 1)
		write(t, filepath.Join(folder, "router.yaml"), one)
		write(t, filepath.Join(folder, "envoy.yaml"), other)
		err := checkFiles(filepath.Join(folder, "router.yaml"), filepath.Join(folder, "envoy.yaml"))
		if one+other == router+envoy || err == nil || !strings.Contains(err.Error(), c.complaint) {
			t.Errorf("%s for %s: %v", c.to, c.from, err)
		}
	}
}

// Settings of envoy.yaml that must agree.
func TestPairsOfSettings(t *testing.T) {
	example, _ := exampleConfig(t)
	c, err := readText(t, example)
	kit.Must(t, err)
	short, err := readText(t, regexp.MustCompile(`(?m)^(max_|plan_age).*`).ReplaceAllString(example, ""))
	kit.Must(t, err)
	var envoy any
	kit.Must(t, yaml.Unmarshal([]byte(readFile(t, "envoy.yaml")), &envoy))
	least := func(name string) int { return slices.Min(numbers(envoy, name)) }
	greatest := func(name string) int { return slices.Max(numbers(envoy, name)) }
	connections, breakers := slices.Max(numbers(valuesOf(envoy, "filters"), "max_connections")), numbers(valuesOf(envoy, "circuit_breakers"), "max_connections")
	idle := numbers(valuesOf(envoy, "clusters"), "idle_timeout")
	decided := int(requestTime.Seconds())
	for what, holds := range map[string]bool{
		"a body before its caller is known fits into the buffer": slices.ContainsFunc(valuesOf(envoy, "end"), func(v any) bool { n, ok := v.(int); return ok && n-1 <= least("per_connection_buffer_limit_bytes")/4 }),
		"the defaults are the example's":                         short.MaxBodyBytes == c.MaxBodyBytes && short.PlanAge == c.PlanAge && short.MaxConnections == c.MaxConnections,
		"a plan lives for six attempts":                          int(c.PlanAge.Seconds()) >= 6*greatest("per_try_timeout"),
		"a stream may be silent for as long as an attempt":       least("stream_idle_timeout") > greatest("per_try_timeout"),
		"the authorizer answers before Envoy gives it up":        decided < greatest("max_interval") && decided < greatest("timeout"),
		"Envoy keeps connections longer than an ALB":             slices.Min(numbers(valuesOf(envoy, "listeners"), "idle_timeout")) > 60,
		"Envoy ends idle connections before a NAT does":          len(idle) == len(c.Providers)+1 && slices.Max(idle) < 240,
		"connections to providers have keep-alive":               len(valuesOf(valuesOf(envoy, "clusters"), "tcp_keepalive")) == len(c.Providers)+1,
		"headers come before the body":                           least("request_headers_timeout") < least("request_timeout"),
		"each client may have an attempt":                        slices.Max(breakers) >= connections,
	} {
		if !holds {
			t.Errorf("not so: %s", what)
		}
	}
}
