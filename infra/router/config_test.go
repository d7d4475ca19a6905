package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"signalbox.dev/infra/test/kit"
)

// exampleConfig returns the example, and writes the files that it names into a folder.
func exampleConfig(t *testing.T) (text, folder string) {
	t.Helper()
	example, err := os.ReadFile("router.yaml")
	kit.Must(t, err)
	folder = t.TempDir()
	write(t, filepath.Join(folder, "openai"), "sk-openai\r\n")
	write(t, filepath.Join(folder, "anthropic"), "sk-anthropic")
	write(t, filepath.Join(folder, "name-keys"), newNameKey()+"\n")
	return strings.ReplaceAll(string(example), "/run/secrets", folder), folder
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
	for name, want := range map[string]string{"openai": "Authorization: Bearer ", "azure": "Api-Key: ", "anthropic": "X-Api-Key: "} {
		if p := c.Providers[name]; p.Header+": "+*p.Prefix != want {
			t.Errorf("%s: %q", name, p.Header+": "+*p.Prefix)
		}
	}
	c, err = readText(t, strings.Replace(example, "# prefix:", "prefix:", 1))
	if kit.Must(t, err); *c.Providers["azure"].Prefix != "Token " {
		t.Errorf("the prefix is %q", *c.Providers["azure"].Prefix)
	}
	if arns := c.Stack.sealingKeys(); len(arns) != 1 || arns[0] != c.Stack.SealingKey {
		t.Errorf("the sealing keys are %q", arns)
	}
	for change, complaint := range map[string]string{
		"127.0.0.1:9180=0.0.0.0:9180":                                   "loopback",
		"127.0.0.1:9180=localhost:9180":                                 "loopback",
		"127.0.0.1:9180=":                                               "listen",
		"127.0.0.1:9180='unix:'":                                        "listen",
		"AccessTableName=accessTableName":                               "accessTableName",
		"  SealingKeyArn=  OtherSealingKey":                             "OtherSealingKey",
		"  AccessTableName=  OtherSealingKeyArn":                        "AccessTableName is missing",
		"  CredentialsTableName=  OtherSealingKeyArn":                   "CredentialsTableName is missing",
		"  SealingKeyArn=  OtherSealingKeyArn":                          "SealingKeyArn is missing",
		"[anthropic]=[]":                                                "no providers",
		"  gpt-5.2: [openai, azure]\n  claude-opus-4.5: [anthropic]\n=": "at least one",
		"[anthropic]=[mistral]":                                         `"mistral", which is not under providers`,
		"  azure:=  azzure:":                                            `"azzure" is not a provider`,
		"\nproviders:=\n---\nproviders:":                                "more than one",
		"max_connections: 1024=max_connections: 0":                      "max_connections",
		"outage_status: 424=outage_status: 200":                         "outage_status",
		"outage_status: 424=outage_status: 600":                         "outage_status",
		"/name-keys=/none":                                              "name_keys_file: open",
		"/name-keys=/openai":                                            "name_keys_file: line 1",
		"key_file: =key_file: /none":                                    `"openai": key_file: open`,
		"plan_age: 1h=plan_age: 0s":                                     "plan_age",
		"max_body_bytes: 4194304=max_body_bytes: 0":                     "max_body_bytes",
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

// The body's limit is one number: a body that Envoy passes on is one that the authorizer
// reads, and one that can be sent a second time.
func TestEnvoyHasTheSameBodyLimit(t *testing.T) {
	example, _ := exampleConfig(t)
	c, err := readText(t, example)
	kit.Must(t, err)
	if byDefault, err := readText(t, strings.Replace(example, "max_body_bytes:", "# max_body_bytes:", 1)); err != nil || byDefault.MaxBodyBytes != c.MaxBodyBytes {
		t.Errorf("the default is %d, %v", byDefault.MaxBodyBytes, err)
	}
	envoy, err := os.ReadFile("envoy.yaml")
	kit.Must(t, err)
	limit := strconv.FormatInt(c.MaxBodyBytes, 10)
	for text, count := range map[string]int{
		"max_request_bytes: " + limit + "}": 1, "request_body_buffer_limit: " + limit + "\n": 1, "request_body_buffer_limit: " + limit + " ": 1,
		"range_match: {start: " + strconv.FormatInt(c.MaxBodyBytes+1, 10) + ",": 1, "request_bytes: ": 1, "request_body_buffer_limit: ": 2, "range_match: ": 1,
	} {
		if n := strings.Count(string(envoy), text); n != count {
			t.Errorf("%q stands there %d times, want %d", text, n, count)
		}
	}
}
