// Command planted runs the cases with planted defects, one at a time, and reports the sentence
// with which a case sees each, or the package test. One that none sees is an error. The working
// tree does not change (go test -overlay).
//
// The list testdata/planted.txt of a package has the defects that its cases must see:
//
//	== what goes wrong
//	shared/limits Rate.tolerance
//	-r.burst-1
//	+r.burst
//
// The second line names the package and the function. The text after "-" occurs once in
// the function, white space apart, and "+" replaces it. A defect may have several changes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	only := flag.String("only", "", "try the defects whose names match this expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	names, err := regexp.Compile(*only)
	if err == nil {
		err = run(ctx, names)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

// run reads all lists, so that each defect must fit the code, and tries some.
func run(ctx context.Context, only *regexp.Regexp) error {
	lists, err := filepath.Glob("*/*/testdata/planted.txt")
	if err != nil {
		return err
	}
	var all []defect
	for _, list := range lists {
		defects, err := read(list)
		if err != nil {
			return fmt.Errorf("%s: %w", list, err)
		}
		all = append(all, defects...)
	}
	tried := slices.DeleteFunc(all, func(d defect) bool { return !only.MatchString(d.name) })
	if len(tried) == 0 {
		return fmt.Errorf("no defect has a name like %s", only)
	}
	var missed []error
	sound := map[string]bool{}
	for _, d := range tried {
		if sound[d.cases] {
			continue
		}
		sound[d.cases] = true
		if out, err := exec.CommandContext(ctx, "go", "test", "-count=1", "-run=^TestCases$", "./"+d.cases).CombinedOutput(); err != nil { //nolint:gosec // our own
			return fmt.Errorf("without a defect: %w\n%s", err, out)
		}
	}
	for _, d := range tried { // go test uses all cores
		found, err := d.find(ctx)
		if err != nil {
			missed = append(missed, fmt.Errorf("%s: %w", d.name, err))
			found = "NOT FOUND"
		}
		fmt.Printf("%-60s %-26s %s\n", d.name, d.cases, found)
	}
	return errors.Join(missed...)
}

// defect is a changed file.
type defect struct {
	name       string
	cases      string // the package with the cases
	file, code string
}

// read reads a list.
func read(list string) (defects []defect, err error) {
	text, err := os.ReadFile(list) //nolint:gosec // a list of ours
	if err != nil {
		return nil, err
	}
	for block := range strings.SplitSeq(strings.TrimPrefix(string(text), "== "), "\n== ") {
		name, rest, _ := strings.Cut(block, "\n")
		where, changes, _ := strings.Cut(rest, "\n")
		folder, function, _ := strings.Cut(where, " ")
		d := defect{name: name, cases: filepath.Dir(filepath.Dir(list))}
		if err := d.plant(folder, function, changes); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defects = append(defects, d)
	}
	return defects, nil
}

// change is a run of lines that begin with "-", and the run after it that begins with "+".
var (
	change = regexp.MustCompile(`(?m)((?:^-.*\n?)+)((?:^\+.*\n?)*)`)
	sign   = regexp.MustCompile(`(?m)^[-+]`)
)

// plant makes the changes to the function, or to the method, written as Type.Method.
func (d *defect) plant(folder, function, changes string) error {
	receiver, name, isMethod := strings.Cut(function, ".")
	if receiver = `\(\w+ \*?` + receiver + `\) `; !isMethod {
		receiver, name = "", function
	}
	declared := regexp.MustCompile(`(?ms)^func ` + receiver + name + `[(\[](?-s:.*\}$|(?s:.*?)^\}$)`)
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		source, err := os.ReadFile(file) //nolint:gosec // a file of ours
		if err != nil {
			return err
		}
		if at := declared.FindIndex(source); at != nil && !strings.HasSuffix(file, "_test.go") {
			body, err := changed(string(source[at[0]:at[1]]), changes)
			d.file, d.code = file, string(source[:at[0]])+body+string(source[at[1]:])
			return err
		}
	}
	return fmt.Errorf("%s has no function %s", folder, function)
}

// changed makes the changes.
func changed(body, changes string) (string, error) {
	all := change.FindAllStringSubmatch(changes, -1)
	if len(all) == 0 {
		return "", errors.New("it changes nothing")
	}
	for _, c := range all {
		was := strings.Fields(sign.ReplaceAllString(c[1], ""))
		for i := range was {
			was[i] = regexp.QuoteMeta(was[i])
		}
		found := regexp.MustCompile(strings.Join(was, `\s*`)).FindAllStringIndex(body, -1)
		if len(found) != 1 {
			return "", fmt.Errorf("the function has this %d times:\n%s", len(found), c[1])
		}
		body = body[:found[0][0]] + strings.TrimSpace(sign.ReplaceAllString(c[2], "")) + body[found[0][1]:]
	}
	return body, nil
}

// sentence is a failed verdict with what it shows. Counts and deadlines do not count, and an
// inspection of calls only where no result can show the defect: stale reads and more round trips.
var sentence = regexp.MustCompile(`(?m)^ +(?:on engines: )?((?:result|line|stored): .*|calls: .* (?:is not strongly consistent|round trips).*)$`)

// find returns a sentence of a case, or the package test, that fails with the defect in two runs
// of two, and not without it.
func (d defect) find(ctx context.Context) (seen string, err error) {
	folder, err := os.MkdirTemp("", "signalbox-planted-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	changed, overlay := filepath.Join(folder, "changed.go"), filepath.Join(folder, "overlay.json")
	root, err := os.Getwd()
	err = errors.Join(err, os.WriteFile(changed, []byte(d.code), 0o600),
		os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace":{%q:%q}}`, filepath.Join(root, d.file), changed), 0o600))
	if err != nil {
		return "", err
	}
	for _, tests := range []struct{ folder, run, skip string }{
		{d.cases, "^TestCases$", ""}, {d.cases, ".", "^TestCases$|^Fuzz"}, {filepath.Dir(d.file), ".", "^TestCases$|^Fuzz"},
	} {
		binary := filepath.Join(folder, "planted.test")
		build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-vet=off", "-o", binary, "./"+tests.folder) //nolint:gosec // our own
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("it does not compile: %w\n%s", err, out)
		}
		seen := twice(ctx, root, tests.folder, binary, "-test.run="+tests.run, "-test.skip="+tests.skip)
		if seen == "" {
			continue
		}
		if test, ok := strings.CutPrefix(seen, tests.folder+" "); ok { // a package test; run has tried the cases
			if out, err := exec.CommandContext(ctx, "go", "test", "-count=1", "-run=^"+test+"$", "./"+tests.folder).CombinedOutput(); err != nil { //nolint:gosec // our own
				return "", fmt.Errorf("%s fails without the defect: %w\n%s", test, err, out)
			}
		}
		return seen, nil
	}
	return "", errors.New("nothing sees it")
}

var (
	failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)
	failedCase = regexp.MustCompile(` --- FAIL: (TestCases/\S+)`)
	panicked   = regexp.MustCompile(`(?m)^panic: `)
)

// twice runs tests, and then the failed one again. It returns how both see the defect, or "".
func twice(ctx context.Context, root, folder, binary string, arguments ...string) (seen string) {
	for range 2 {
		command := exec.CommandContext(ctx, binary, append(arguments, "-test.timeout=10m")...) //nolint:gosec // our own
		if slices.Contains(arguments, "-test.run=^TestCases$") {
			command.Args = append(command.Args, "-first")
		}
		command.Dir = filepath.Join(root, folder)
		out, err := command.CombinedOutput()
		test := failedTest.FindSubmatch(out)
		if err == nil || test == nil || panicked.Match(out) {
			return ""
		}
		seen = folder + " " + string(test[1])
		if failedCase.Match(out) {
			said := sentence.FindAllSubmatch(out, -1)
			if len(said) == 0 {
				return ""
			}
			last := failedCase.FindAllSubmatch(out, -1)
			test = last[len(last)-1]
			seen = string(test[1]) + ": " + string(said[len(said)-1][1])
		}
		arguments = []string{"-test.run=^" + strings.ReplaceAll(string(test[1]), "/", "$/^") + "$"}
	}
	return seen
}
