package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/acts"
	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

func TestALifetimeMayBeInDays(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]time.Duration{
		"90d": 90 * 24 * time.Hour, "1d": 24 * time.Hour, "36500d": arguments.MaxDays * 24 * time.Hour, "36h": 36 * time.Hour, "1h30m": 90 * time.Minute,
		"0d": 0, "0s": 0, "-1d": 0, "-9223372036854775807d": 0, "-2147483648d": 0, "-1h": 0, "36501d": 0, "2147483647d": 0, "99999999999d": 0, "876001h": 0,
		"90": 0, "d": 0, "": 0, "1.5d": 0, "1d12h": 0, "ten days": 0,
	} {
		got, err := arguments.ParseLifetime(given)
		if time.Duration(got) != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %s, %v; want %s", given, time.Duration(got), err, want)
		}
	}
}

// A list has one line for each row. It cuts names, and leaves out columns from the right,
// until it fits the terminal.
func TestListsFitTheTerminal(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	const first, second = "11111111-2222-4333-8444-555555555555", "11111111-2222-4999-8444-555555555555"
	credential := func(id ids.Credential, name string, age time.Duration) byok.Credential {
		return byok.Credential{
			ID: id, Account: first, Workspace: first, Label: "sk-...efgh", Form: byok.Header, SortOrder: 7, CreatedAt: now.Add(-age),
			Settings: byok.Settings{Provider: "openai", Name: name},
		}
	}
	found := []byok.Credential{credential(first, "n", 3*24*time.Hour), credential(second, "Nightly batch of the research team", 90*time.Minute)}
	const all = "ID NAME PROVIDER STATE WORKSPACE ACCOUNT AGE LABEL ORDER FLAGS ONLY FOR"
	for width, want := range map[int]string{
		0: all + " 11111111-2222-43 n openai active 11111111 11111111 3d sk-...efgh 7 - -" +
			" 11111111-2222-49 Nightly batch of the research team openai active 11111111 11111111 90m sk-...efgh 7 - -",
		80: "ID NAME PROVIDER STATE WORKSPACE ACCOUNT AGE 11111111-2222-43 n openai active 11111111 11111111 3d" +
			" 11111111-2222-49 Nightly batch of … openai active 11111111 11111111 90m" +
			"Not shown for want of room: LABEL, ORDER, FLAGS, ONLY FOR (--json has everything).",
		5: "ID 11111111-2222-43 11111111-2222-49" + "Not shown for want of room: NAME, PROVIDER, STATE, WORKSPACE, ACCOUNT, AGE, LABEL, ORDER, FLAGS, ONLY FOR (--json has everything).",
	} {
		var shown strings.Builder
		notes := ""
		s := &session{out: output.Writer{To: &shown, Width: width, Now: now, Note: func(format string, args ...any) { notes += fmt.Sprintf(format, args...) }}}
		kit.Must(t, showCredentials(s, found, everywhere...))
		if diff := cmp.Diff(want, strings.Join(strings.Fields(shown.String()), " ")+notes); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", width, diff)
		}
		if lines := strings.Count(shown.String(), "\n"); lines != 3 {
			t.Errorf("%d columns: %d lines for 2 rows", width, lines)
		}
	}
	for width := 20; width < 140; width++ {
		var shown strings.Builder
		kit.Must(t, showCredentials(&session{out: output.Writer{To: &shown, Width: width, Now: now, Note: func(string, ...any) {}}}, found, everywhere...))
		for line := range strings.Lines(shown.String()) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
}

// The command relies on two facts of the template: the names of its outputs, and the
// timeout of a function.
func TestTheCommandAgreesWithTheTemplate(t *testing.T) {
	t.Parallel()
	template, err := os.ReadFile("../../template.yaml")
	kit.Must(t, err)
	outputs := regexp.MustCompile(`(?ms)^Outputs:\n.*`).Find(template)
	for field := range reflect.TypeFor[target.Outputs]().Fields() {
		if !strings.Contains(string(outputs), "\n  "+field.Name+":") {
			t.Errorf("the template has no output %s", field.Name)
		}
	}
	timeouts := regexp.MustCompile(`(?m)^ +Timeout: (\d+)$`).FindAllSubmatch(template, -1)
	if len(timeouts) == 0 {
		t.Fatal("the template sets no timeout")
	}
	for _, timeout := range timeouts {
		seconds, err := strconv.Atoi(string(timeout[1]))
		if limit := time.Duration(seconds) * time.Second; err != nil || limit >= acts.RequestsEnd {
			t.Errorf("a function may run for %s; a purge waits %s", limit, acts.RequestsEnd)
		}
	}
}

// Every command that the documents show is one, with the flags that it needs.
func TestTheDocumentsCommandsExist(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../operations/*.md")
	kit.Must(t, err)
	inBlock := regexp.MustCompile(`(?m)^ *(?:\w+=\$\()?admin ([^|)#\n]+)`)
	inText := regexp.MustCompile("`admin ([a-z]+ [a-z][^`]+)`|make admin ARGS='([^']+)'")
	quoted, incomplete := regexp.MustCompile(`"\w+( \w+)+"`), regexp.MustCompile(`^(expected "<|missing flags|restore repair: give)`) // a sentence may name a command alone
	assigned := regexp.MustCompile(`\b([A-Z_]+)=([^\s$]+)`)
	examples := map[string]string{
		"OLD": "6d68ca91", "CREDENTIAL": "6d68ca91", "NEW": "6d68ca92", "FILE": "../router/router.yaml", "M": "m", "H": strings.Repeat("0", 64), "P": "openai",
		"HASH": "3f9a1c04", "KEY": "3f9a1c04", "NAME": "name", "ID": "2e91d3ac", "COMMAND": "key", "router.yaml": "../router/router.yaml",
	}
	seen, parser := 0, newParser()
	for _, page := range append(pages, "../local/README.md", "../routing.md") {
		text, err := os.ReadFile(page) //nolint:gosec // our own documents
		kit.Must(t, err)
		values := []string{"$NEXT_KEY_ARN", "arn:aws:kms:us-east-1:111122223333:key/0", "$TABLE", "table", "$MOMENT", "2026-11-21T10:00:00Z"}
		for _, a := range assigned.FindAllStringSubmatch(string(text), -1) {
			values = append(values, "$"+a[1], a[2])
		}
		for _, found := range append(inBlock.FindAllStringSubmatch(string(text), -1), inText.FindAllStringSubmatch(string(text), -1)...) {
			line := strings.NewReplacer(append(values, `"`, "")...).Replace(quoted.ReplaceAllString(strings.Join(found[1:], ""), "quoted"))
			args := strings.Fields(line)
			for i, arg := range args {
				if example, ok := examples[strings.TrimSuffix(arg, "…")]; ok {
					args[i] = example
				}
			}
			fresh(parser)
			_, err := (&app{stdout: io.Discard, stderr: io.Discard}).parse(parser, args)
			named := err != nil && strings.HasPrefix(found[0], "`") && incomplete.MatchString(err.Error())
			if err != nil && !errors.Is(err, arguments.ErrShown) && !named {
				t.Errorf("%s: admin %s: %v", filepath.Base(page), strings.Join(args, " "), err)
			}
			seen++
		}
	}
	if seen < 40 {
		t.Errorf("%d commands were found", seen)
	}
}

// A command that asks is the last one of its block: what is pasted after it would be the
// answer. A command asks if it has --yes, and `sam deploy` if samconfig.toml says so.
func TestACommandThatAsksEndsItsBlock(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		text, err := os.ReadFile(path) //nolint:gosec // our own documents
		kit.Must(t, err)
		return string(text)
	}
	asking := []string{"read -rs"}
	for _, command := range newParser().Model.Leaves(true) {
		for _, flag := range command.Flags {
			if flag.Name == "yes" {
				asking = append(asking, strings.ReplaceAll(command.FullPath(), " ", `(?: -\S+)* `))
			}
		}
	}
	for _, target := range regexp.MustCompile(`(?m)^([\w-]+):.*\n(?:\t.*\n)*\t.*--yes`).FindAllStringSubmatch(read("../../Makefile"), -1) {
		asking = append(asking, "make "+target[1])
	}
	if strings.Contains(read("../../samconfig.toml"), "confirm_changeset = true") {
		asking = append(asking, "sam deploy")
	}
	asks := regexp.MustCompile(`\b(?:` + strings.Join(asking, "|") + `)[^;&|\n]*`)
	block := regexp.MustCompile("(?ms)^ *```(?:sh|bash)\n(.*?)^ *```$")
	seen := 0
	for _, pattern := range []string{"../../*.md", "../../.github/*.md", "../*.md", "../*/*.md"} {
		pages, err := filepath.Glob(pattern)
		kit.Must(t, err)
		for _, page := range pages {
			for _, found := range block.FindAllStringSubmatch(read(page), -1) {
				commands := strings.TrimSpace(strings.ReplaceAll(found[1], "\\\n", ""))
				for _, at := range asks.FindAllStringIndex(commands, -1) {
					seen++
					if command := commands[at[0]:at[1]]; at[1] < len(commands) && !strings.Contains(command, "--dry-run") {
						t.Errorf("%s: this asks, and is not the last of its block: %s", page, command)
					}
				}
			}
		}
	}
	if len(asking) < 10 || seen < 10 {
		t.Errorf("%d commands ask: %q", seen, asking)
	}
}

// Each test that SECURITY.md names is in the package after it. Without one it is in each function.
func TestTheNamedTestsExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../.github/SECURITY.md")
	kit.Must(t, err)
	test, in := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)[^`]*`"), regexp.MustCompile("^(?:(?:, | and )`[^`]+`)* in `([^`]+)`")
	seen := 0
	for line := range strings.Lines(string(text)) {
		for _, at := range test.FindAllStringSubmatchIndex(line, -1) {
			folder := "functions/*"
			if found := in.FindStringSubmatch(line[at[1]:]); found != nil {
				folder = found[1]
			}
			files, err := filepath.Glob("../../" + folder + "/*_test.go")
			kit.Must(t, err)
			name, declared := line[at[2]:at[3]], false
			for _, file := range files {
				code, err := os.ReadFile(file) //nolint:gosec // our own tests
				kit.Must(t, err)
				declared = declared || strings.Contains(string(code), "\nfunc "+name+"(")
			}
			if seen++; !declared {
				t.Errorf("SECURITY.md names %s; %s has no such test", name, folder)
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d tests were found", seen)
	}
}

// A pipe that nobody reads ends no command late: before it begins it is refused, and after a signal
// the command ends.
func TestAnAuditFileThatNobodyReads(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	kit.Must(t, syscall.Mkfifo(pipe, 0o600))
	args := []string{"--audit-file", pipe, "workspace", "create", "w"}
	if got := d.want(acts.Usage, args...); !strings.Contains(got.stderr, "nothing was done") {
		t.Error(got.stderr)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0) //nolint:gosec // our own pipe
	kit.Must(t, err)
	defer func() { _ = reader.Close() }()
	kit.Must(t, reader.SetWriteDeadline(time.Now().Add(time.Second)))
	for err == nil { // until it is full
		_, err = reader.Write(make([]byte, 4096))
	}
	ctx, interrupt := context.WithCancel(t.Context())
	d.broken().Inject(faults.Rule{Fault: faults.Then(interrupt)})
	if got := d.run(ctx, nil, args...); got.code != acts.Uncertain || !strings.Contains(got.stderr, "could not be written") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}
