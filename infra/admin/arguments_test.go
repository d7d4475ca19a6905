package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
)

func TestWordsAreCompleted(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                   "status account workspace key job file credential restore completion",
		"ke":                                 "key",
		"credential re":                      "rewrap",
		"--local x workspace d":              "default delete",
		"--json workspace d":                 "default delete",
		"key create --k":                     "--kind",
		"key create --kind ":                 "management standard",
		"key create --kind management --exp": "--expires-in",
		"completion z":                       "zsh",
		"credential plan --provider mis":     "mistral",
		"key create a":                       "",
		"nonsense ":                          "status account workspace key job file credential restore completion",
	} {
		got := on(t, append([]string{arguments.CompleteWord}, strings.Split(line, " ")...)...)
		if diff := cmp.Diff(strings.Fields(want), strings.Fields(got.stdout)); diff != "" || got.code != acts.Done || got.stderr != "" {
			t.Errorf("%q, exit code %d (-want +got):\n%s", line, got.code, diff)
		}
	}
	if got := on(t, arguments.CompleteWord); got.code != acts.Done || got.stdout != "" {
		t.Errorf("no words: exit code %d: %s", got.code, got.stdout)
	}
}

// The scripts need no target. make needs bash, so bash is installed and can run its script.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if got := on(t, "--stack", "absent", "completion", shell); got.code != acts.Done || !strings.Contains(got.stdout, arguments.CompleteWord) || got.stderr != "" {
			t.Errorf("%s: exit code %d: %s%s", shell, got.code, got.stdout, got.stderr)
		}
	}
	try := on(t, "completion", "bash").stdout + `COMP_WORDS=(admin key create --kind ""); COMP_CWORD=4; _admin; echo "${COMPREPLY[@]}"`
	bash := exec.Command("bash", "-c", try) //nolint:gosec // the script under test; TestMain puts the command on the path
	bash.Env = append(os.Environ(), atOnce)
	if got, err := bash.CombinedOutput(); err != nil || string(got) != "management standard\n" {
		t.Errorf("%v: %s", err, got)
	}
}

// A usage error repeats at most 11 characters in a row of a secret that was typed anywhere.
// testdata/screens.txt has one in a variable.
func TestNoUsageErrorRepeatsASecret(t *testing.T) {
	t.Parallel()
	const hex, mixed = "0123456789abcdef", "aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789-_./~=+,:;" + "\\\"'{} \n\x01é" // quoting changes the last characters
	secret := func(seed uint64) string {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
		letters := [][]rune{[]rune(mixed), []rune(hex)}[seed%2]
		drawn := make([]rune, 16+random.IntN(60))
		for i := range drawn {
			drawn[i] = letters[random.IntN(len(letters))]
		}
		return string(drawn)
	}
	dir := t.TempDir()
	for _, words := range []string{
		"SECRET", "SECRET list", "key SECRET", "account list SECRET", "--SECRET", "-SECRET", "--SECRET=1",
		"account list -qSECRET", "account list --audit-file=SECRET", "account list --json=SECRET",
		"key create k --kind SECRET", "key create k --expires-in=SECRET", "key disable SECRET",
		"job show /SECRET", "file delete SECRET", "file upload SECRET", "credential show SECRET", "credential list --workspace SECRET",
		"credential plan --model m --provider openai,SECRET", "credential plan --model m --provider openai --api-key-hash SECRET", "credential rewrap --to SECRET", "credential rewrap --from=SECRET",
	} {
		for seed := range uint64(3) {
			typed, args := secret(seed), strings.Fields("--local DIR "+words)
			for i := range args {
				args[i] = strings.NewReplacer("DIR", dir, "SECRET", typed).Replace(args[i])
			}
			shown := strings.ToLower(on(t, args...).stderr)
			for i := range max(0, len(shown)-11) {
				if strings.Contains(strings.ToLower(typed+strconv.Quote(typed)), shown[i:i+12]) {
					t.Fatalf("%q: %s", args, shown)
				}
			}
		}
	}
}
