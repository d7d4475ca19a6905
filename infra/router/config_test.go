package main

import (
	"os"
	"strings"
	"testing"

	"signalbox.dev/infra/testkit"
)

func TestConfig(t *testing.T) {
	example, err := os.ReadFile("router.yaml")
	testkit.Must(t, err)
	c, err := readConfig(strings.NewReader(string(example)))
	testkit.Must(t, err)
	for name, want := range map[string]string{"openai": "Authorization: Bearer ", "azure": "Api-Key: ", "anthropic": "X-Api-Key: "} {
		if p := c.Providers[name]; p.Header+": "+*p.Prefix != want {
			t.Errorf("%s: %q", name, p.Header+": "+*p.Prefix)
		}
	}
	c, err = readConfig(strings.NewReader(strings.Replace(string(example), "# prefix:", "prefix:", 1)))
	if testkit.Must(t, err); *c.Providers["azure"].Prefix != "Token " {
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
		"host: api.openai.com=host: ''":                                 `"openai" has no host`,
		"\nproviders:=\nproviders:\n  mistral:":                         `"mistral" has no host`,
		"max_plans: 100000=max_plans: 0":                                "max_plans",
		"plan_age: 10m=plan_age: 0s":                                    "plan_age",
		"max_body_bytes: 16777216=max_body_bytes: 0":                    "max_body_bytes",
	} {
		from, to, _ := strings.Cut(change, "=")
		changed := strings.Replace(string(example), from, to, 1)
		if _, err := readConfig(strings.NewReader(changed)); changed == string(example) || err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: %v", change, err)
		}
	}
}
