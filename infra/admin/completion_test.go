package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/exit"
)

func TestWordsAreCompleted(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                   "status account workspace key job file credential restore completion help",
		"ke":                                 "key",
		"credential re":                      "rewrap",
		"--local x workspace d":              "default delete",
		"--json workspace d":                 "default delete",
		"key create --k":                     "--kind",
		"key create --kind ":                 "management standard",
		"key create --kind management --exp": "--expires-in --expires-at",
		"completion z":                       "zsh",
		"credential list --provider mis":     "mistral",
		"key create a":                       "",
		"nonsense ":                          "status account workspace key job file credential restore completion help",
	} {
		got := on(t, append([]string{arguments.CompleteWord}, strings.Split(line, " ")...)...)
		if diff := cmp.Diff(strings.Fields(want), strings.Fields(got.stdout)); diff != "" || got.code != exit.Done || got.stderr != "" {
			t.Errorf("%q, exit code %d (-want +got):\n%s", line, got.code, diff)
		}
	}
	if got := on(t, arguments.CompleteWord); got.code != exit.Done || got.stdout != "" {
		t.Errorf("no words: exit code %d: %s", got.code, got.stdout)
	}
}

// The scripts need no target. make needs bash, so bash is installed and can run its script.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := on(t, "--stack", "absent", "completion", shell); got.code != exit.Done || !strings.Contains(got.stdout, arguments.CompleteWord) || got.stderr != "" {
			t.Errorf("%s: exit code %d: %s%s", shell, got.code, got.stdout, got.stderr)
		}
	}
	if got := on(t, "completion", "tcsh"); got.code != exit.Usage {
		t.Errorf("tcsh: exit code %d: %s", got.code, got.stdout)
	}
	try := on(t, "completion", "bash").stdout + `COMP_WORDS=(admin key create --kind ""); COMP_CWORD=4; _admin; echo "${COMPREPLY[@]}"`
	bash := exec.Command("bash", "-c", try) //nolint:gosec // the script under test; TestMain puts the command on the path
	if got, err := bash.CombinedOutput(); err != nil || string(got) != "management standard\n" {
		t.Errorf("%v: %s", err, got)
	}
}
