package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/exit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

func at(order int64) func(*byok.Draft) {
	return func(d *byok.Draft) { d.SortOrder = order }
}

func TestAPlanIsShown(t *testing.T) {
	d := newFixture(t)
	hash := strings.Repeat("0a", 32)
	credentials := map[string]ids.Credential{
		"first":    d.seal(d.workspace, "first", at(0)),
		"disabled": d.seal(d.workspace, "disabled", at(1), func(d *byok.Draft) { d.Disabled, d.BYOKOnly = true, true }),
		"model":    d.seal(d.workspace, "model", at(2), func(d *byok.Draft) { d.AllowedModels, d.Required = []string{"n"}, true }),
		"key":      d.seal(d.workspace, "key", at(3), func(d *byok.Draft) { d.AllowedAPIKeyHashes = []string{strings.Repeat("0b", 32)} }),
		"user":     d.seal(d.workspace, "user", at(4), func(d *byok.Draft) { d.AllowedUserIDs = []string{"u"} }),
		"fallback": d.seal(d.workspace, "fallback", at(5), func(d *byok.Draft) {
			d.Fallback, d.AllowedAPIKeyHashes = true, []string{hash}
		}),
	}
	plan := []string{"credential", "plan", "--model", "m", "--api-key-hash", hash, "--provider", "openai", "--provider", "mistral"}
	inFull := strings.NewReplacer("FIRST", string(credentials["first"]), "DISABLED", string(credentials["disabled"]),
		"MODEL", string(credentials["model"]), "KEY", string(credentials["key"]), "USER", string(credentials["user"]), "FALLBACK", string(credentials["fallback"]))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"all but one skipped": {plan, `{"steps":[{"kind":"credential","id":"FIRST","provider":"openai"},{"kind":"shared","provider":"openai"},` +
			`{"kind":"shared","provider":"mistral"},{"kind":"credential","id":"FALLBACK","provider":"openai"}],` +
			`"skipped":[{"id":"DISABLED","reason":"disabled"},{"id":"MODEL","reason":"model"},{"id":"KEY","reason":"api_key"},{"id":"USER","reason":"user"}],"removed":[]}`},
		"removed": {[]string{"credential", "plan", "--model", "n", "--user", "u", "--provider", "openai"}, `{"steps":[{"kind":"credential","id":"FIRST","provider":"openai"},` +
			`{"kind":"credential","id":"MODEL","provider":"openai"},{"kind":"credential","id":"USER","provider":"openai"}],` +
			`"skipped":[{"id":"DISABLED","reason":"disabled"},{"id":"KEY","reason":"api_key"},{"id":"FALLBACK","reason":"api_key"}],"removed":[{"provider":"openai","by":["MODEL"]}]}`},
		"another provider": {[]string{"credential", "plan", "--model", "n", "--provider", "a,b"}, `{"steps":[{"kind":"shared","provider":"a,b"}],"skipped":[],"removed":[]}`},
	} {
		got := d.want(exit.Done, append([]string{"--json"}, c.args...)...)
		if diff := cmp.Diff(inFull.Replace(c.want)+"\n", got.stdout); diff != "" || got.stderr != "" {
			t.Errorf("%s (-want +got): %s%s", name, diff, got.stderr)
		}
	}
	shown := d.must(plan...)
	for _, want := range []string{
		"1     openai    credential FIRST  sk-...efgh", "2     openai    shared endpoint", "4     openai    credential FALLBACK",
		"credential MODEL  sk-...efgh  skipped: its allowed_models do not have the model",
	} {
		if !strings.Contains(strings.ReplaceAll(shown, "  ", " "), strings.ReplaceAll(inFull.Replace(want), "  ", " ")) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	if shown := d.must("credential", "plan", "--model", "n", "--provider", "openai"); !strings.Contains(shown, "removed by "+string(credentials["model"])+" (is_required)") {
		t.Errorf("shown:\n%s", shown)
	}
}

func TestAPlanRefuses(t *testing.T) {
	d := newFixture(t)
	plan := []string{"credential", "plan", "--model", "m", "--provider", "openai"}
	d.want(exit.Usage, plan[:4]...)
	d.want(exit.Usage, "credential", "plan", "--provider", "openai")
	for _, hash := range []string{"", "0a", strings.Repeat("0A", 32), strings.Repeat("0a", 32) + "0", "sbx_pasted"} {
		if got := d.want(exit.Usage, append(plan, "--api-key-hash", hash)...); strings.Contains(got.stderr, "pasted") {
			t.Errorf("repeats what may be a key: %s", got.stderr)
		}
	}
	d.want(exit.NotFound, append(plan, "--workspace", string(ids.New[ids.Workspace]()))...)
	d.seal(d.workspace, "closed", func(d *byok.Draft) { d.BYOKOnly, d.AllowedModels = true, []string{} })
	if shown := d.must(plan...); !strings.Contains(shown, "the request is refused") || !strings.Contains(shown, "(is_byok_only)") {
		t.Errorf("shown:\n%s", shown)
	}
	if got := d.want(exit.Done, "credential", "plan", "--model", "m", "--provider", "OpenAI"); !strings.Contains(got.stderr, `"OpenAI" is no provider`) {
		t.Errorf("a misspelt provider: %s", got.stderr)
	}
	d.must("workspace", "delete", string(d.workspace), "--yes")
	if got := d.want(exit.Refused, append(plan, "--workspace", string(d.workspace))...); !strings.Contains(got.stderr, "the workspace is deleted") || got.stdout != "" {
		t.Errorf("of a deleted workspace: %s%s", got.stdout, got.stderr)
	}
}

func TestReopeningASharedEndpointIsWarnedOf(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*byok.Draft)
		others []func(*byok.Draft)
		want   string // "" for no warning
	}{
		"byok_only":            {func(d *byok.Draft) { d.BYOKOnly = true }, nil, "for every model may use the shared endpoint of openai"},
		"required":             {func(d *byok.Draft) { d.Required, d.AllowedModels = true, []string{"m", "n"} }, nil, `for "m", "n" may`},
		"required by another":  {func(d *byok.Draft) { d.BYOKOnly = true }, []func(*byok.Draft){func(d *byok.Draft) { d.Required, d.AllowedModels = true, []string{"m"} }}, `for every model but "m" may`},
		"byok_only by another": {func(d *byok.Draft) { d.Required = true }, []func(*byok.Draft){func(d *byok.Draft) { d.BYOKOnly = true }}, ""},
		"no flag":              {func(*byok.Draft) {}, nil, ""},
		"disabled already":     {func(d *byok.Draft) { d.BYOKOnly, d.Disabled = true, true }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			for _, other := range c.others {
				d.seal(d.workspace, "other", other)
			}
			id := string(d.seal(d.workspace, "mine", c.change))
			warned := func(got answer, code int) {
				t.Helper()
				warning, _, _ := strings.Cut(got.stderr, "confirm:")
				if got.code != code || c.want != "" && !strings.Contains(warning, c.want) || strings.Contains(got.stderr, "warning") != (c.want != "") {
					t.Errorf("exit code %d: %s", got.code, got.stderr)
				}
			}
			before := d.state(string(d.workspace))
			warned(d.typed("no\n", "credential", "delete", id), exit.Refused)
			if c.want != "" {
				warned(d.typed("no\n", "credential", "disable", id), exit.Refused)
				if diff := cmp.Diff(before, d.state(string(d.workspace))); diff != "" {
					t.Errorf("changed without a confirmation: %s", diff)
				}
			}
			for _, disable := range []func() answer{
				func() answer { return d.typed("mine\n", "credential", "disable", id) },
				func() answer { return d.typed("", "credential", "disable", id, "--yes") },
				func() answer { return d.do("credential", "disable", id) },
			} {
				warned(disable(), exit.Done)
				if name != "disabled already" {
					d.must("credential", "enable", id)
				}
			}
			warned(d.do("credential", "delete", id, "--yes"), exit.Done)
		})
	}
}

func TestSupersede(t *testing.T) {
	d := newFixture(t)
	old, successor := d.seal(d.workspace, "old", at(3)), d.seal(d.workspace, "new", at(8))
	required := d.seal(d.workspace, "other", at(9), func(d *byok.Draft) { d.Required = true })
	disabled := d.seal(d.workspace, "disabled", at(10), func(d *byok.Draft) { d.Disabled = true })
	mistral := d.seal(d.workspace, "mistral", func(d *byok.Draft) { d.Provider = "mistral" })
	before := d.state(string(d.workspace))
	for name, c := range map[string]struct {
		old, successor ids.Credential
		code           int
		want           string
	}{
		"itself":           {old, old, exit.Usage, "name the old one, then the new one"},
		"another provider": {old, mistral, exit.Refused, "for the same provider"},
		"disabled":         {old, disabled, exit.Refused, "enable it first"},
		"another flag":     {old, required, exit.Refused, "is_required"},
		"absent":           {old, "00000000-0000-4000-8000-000000000000", exit.NotFound, "00000000-0000-4000-8000-000000000000"},
	} {
		got := d.want(c.code, "credential", "supersede", string(c.old), string(c.successor))
		if !strings.Contains(got.stderr, c.want) || got.audits()[0]["outcome"] != "refused" {
			t.Errorf("%s: %s", name, got.stderr)
		}
	}
	if diff := cmp.Diff(before, d.state(string(d.workspace))); diff != "" {
		t.Fatalf("a refusal changed %s", diff)
	}
	done := d.want(exit.Done, "credential", "supersede", string(old), string(successor))
	if audits := done.audits(); len(audits) != 1 || audits[0]["action"] != "credential.supersede" || audits[0]["credential"] != string(old) ||
		audits[0]["successor"] != string(successor) || !strings.Contains(done.stderr, "target: ") {
		t.Errorf("%s", done.stderr)
	}
	d.want(exit.Done, "credential", "supersede", string(successor), string(required), "--anyway")
	if got := d.want(exit.Refused, "credential", "supersede", string(required), string(successor)); !strings.Contains(got.stderr, "disabled") {
		t.Errorf("%s", got.stderr)
	}
	d.must("credential", "enable", string(successor))
	if got := d.want(exit.Done, "credential", "supersede", string(required), string(successor), "--anyway"); !strings.Contains(got.stderr, "warning: ") {
		t.Errorf("no warning of the shared endpoint: %s", got.stderr)
	}
	var plan planView
	d.json(&plan, "credential", "plan", "--model", "m", "--provider", "openai")
	if want := []stepView{{Kind: "credential", ID: successor, Provider: "openai"}, {Kind: "shared", Provider: "openai"}}; !cmp.Equal(plan.Steps, want) {
		t.Errorf("steps %+v", plan.Steps)
	}
}
