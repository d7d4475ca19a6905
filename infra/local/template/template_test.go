package template_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/template"
	"signalbox.dev/infra/test/kit"
)

func TestParametersAreChecked(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"StageName", "LIVE", `parameter StageName: "LIVE" does not match ^[a-z0-9_-]{1,32}$`},
		{"DeleteBurst", "0", "parameter DeleteBurst: 0 is less than 1"},
		{"DeleteBurst", "100001", "parameter DeleteBurst: 100001 is more than 100000"},
		{"DeleteBurst", "many", `parameter DeleteBurst: "many" is not a number`},
		{"FilesVersioning", "off", `parameter FilesVersioning: "off" is none of Off, Enabled, Suspended`},
		{"Nonsense", "1", "the template has no parameter Nonsense"},
	} {
		_, err := template.Load("../../../template.yaml", map[string]string{c.name: c.value})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// function is a template of one function; its variable V is the value to resolve.
const function = `
Parameters: {Stage: {Type: String, Default: live}}
Conditions:
  Live: !Equals [!Ref Stage, live]
  Other: !Not [!Condition Live]
Globals: {Function: {Handler: bootstrap, Timeout: 10, Environment: {Variables: {COMMON: common, OWN: global}}}}
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      MemorySize: 512
      Environment:
        Variables:
          OWN: &mine mine
          V: `

func TestFunctions(t *testing.T) {
	made := template.Resources{"Things": {"Ref": "things-1"}, "Seal": {"Ref": "key-1", "Arn": "arn:seal"}}
	for value, want := range map[string]string{
		"text":                                "text",
		"''":                                  "",
		"*mine":                               "mine",
		"!If [Other, no, *mine]":              "mine",
		"!Ref Stage":                          "live",
		"!Ref Things":                         "things-1",
		"!GetAtt Seal.Arn":                    "arn:seal",
		"!If [Live, yes, no]":                 "yes",
		"!If [Other, yes, no]":                "no",
		"!Ref AWS::NoValue":                   "absent",
		"!If [Other, yes, !Ref AWS::NoValue]": "absent",
		"!Sub ${Stage}-${AWS::Region}-${Things}-${Seal.Arn}":         "live-us-east-1-things-1-arn:seal",
		"!Sub ${AWS::Partition}:${AWS::StackName}.${AWS::URLSuffix}": "aws:signalbox-local.amazonaws.com",
		"!GetAtt Nothing.Arn":       "template.yaml:15: !GetAtt: Arn of Nothing is not known on one machine",
		"!Sub ${Nothing}":           "template.yaml:15: !Sub: Ref of Nothing is not known",
		"!Join ['', [a]]":           "template.yaml:15: !Join: only the form that template.yaml uses",
		"!Base64 a":                 "template.yaml:15: !Base64: not supported on one machine",
		"!If [Live, yes]":           "template.yaml:15: !If: only the form",
		"!If [Nowhere, yes, no]":    `template.yaml:15: !If: no condition "Nowhere"`,
		"!If [!Or [Live], yes, no]": "template.yaml:15: !If: no condition",
	} {
		path := filepath.Join(t.TempDir(), "template.yaml")
		kit.Must(t, os.WriteFile(path, []byte(function+value+"\n"), 0o600))
		loaded, err := template.Load(path, nil)
		kit.Must(t, err)
		got, err := loaded.Functions(made)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", value, err, want)
			}
			continue
		}
		f := template.Function{Handler: "bootstrap", MemorySize: 512, Timeout: 10}
		f.Environment.Variables = map[string]string{"COMMON": "common", "OWN": "mine", "V": want}
		if want == "absent" {
			delete(f.Environment.Variables, "V")
		}
		if diff := cmp.Diff([]template.Resource[template.Function]{{ID: "F", Properties: f}}, got); diff != "" {
			t.Errorf("%s:\n%s", value, diff)
		}
	}
}
