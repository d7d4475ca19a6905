package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// gatewayDecides are the tests of the contract suite that send what a deployed
// gateway may refuse before the service sees it: escapes that are broken, slashes
// within an id, bytes that are no UTF-8, bodies over 10 MB. Nothing is done then, so
// another answer than the service's own is handled.
var gatewayDecides = regexp.MustCompile(`^(` + strings.Join([]string{
	`TestFileIDs/(far_too_long|escaped_(slash|path|dots|backslash|NUL|line_feed)|not_UTF-8|broken_escape|cut_escape)`,
	`TestJobIDs/(far_too_long|escaped_(slash|newline)|broken_escape|cut_escape)`,
	`TestWorkspaceParameter/.*%(ff|fe|zz|00).*`,
	`TestUnknownRoutes/.*(//|/)`,
	`TestAuthorizationHeader/(two_headers|two_headers,_one_empty|tab_for_space|not_ASCII)`,
	`TestContentHeaders/.*`,
	`TestStrictJSON/(not_UTF-8|overlong|surrogate_in_UTF-8|cut_character)`,
	`TestEveryStatus/\w+_Bad_Request`,
}, "|") + `)$`)

// needsRouter are the tests that open what was sealed: the sealing key's policy lets
// only the router's role do that.
const needsRouter = "^TestARouterSendsTheKeyThatWasPosted$"

// runSuite runs the contract suite against the stack.
func runSuite(ctx context.Context, a *asker) (finding, error) {
	folder := filepath.Join(a.root, ".build", "prove")
	described, err := json.Marshal(map[string]any{"region": a.config.Region, "outputs": a.outputs})
	if err != nil {
		return finding{}, err
	}
	stack := filepath.Join(folder, a.name+"-stack.json")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return finding{}, err
	}
	if err := os.WriteFile(stack, described, 0o600); err != nil {
		return finding{}, fmt.Errorf("describing the stack to the contract suite: %w", err)
	}
	skip := needsRouter
	if a.skipped != "" {
		skip += "|" + a.skipped
	}
	command := exec.CommandContext(ctx, "go", "test", "-count=1", "-json", "-timeout", "30m", "-skip", skip, ".")
	command.Dir = filepath.Join(a.root, "infra", "contract")
	command.Env = append(os.Environ(), "SIGNALBOX_BASE_URL="+a.outputs["ApiBaseUrl"], "SIGNALBOX_STACK="+stack, "SIGNALBOX_GATEWAY=", "AWS_REGION="+a.config.Region)
	if a.made != "" {
		command.Env = append(command.Env, "SIGNALBOX_MADE="+a.made)
	}
	var problems bytes.Buffer
	command.Stderr = &problems
	out, runErr := command.Output()
	if err := os.WriteFile(filepath.Join(folder, a.name+"-contract.json"), out, 0o600); err != nil {
		return finding{}, err
	}
	passedTests, failures, skipped := readTests(out)
	if ctx.Err() != nil {
		return finding{}, ctx.Err()
	}
	if passedTests == 0 || runErr != nil && len(failures) == 0 {
		return failed("the suite did not run: %v %s", runErr, problems.String()), nil
	}
	other := slices.DeleteFunc(slices.Clone(failures), gatewayDecides.MatchString)
	more := ", left out: " + strings.Join(append(skipped, strings.Split(strings.NewReplacer("^", "", "$", "").Replace(skip), "|")...), ", ")
	switch {
	case len(other) > 0:
		return failed("%d tests passed%s, these failed: %s", passedTests, more, strings.Join(failures, ", ")), nil
	case len(failures) > 0:
		return differing("%d tests passed%s; the gateway refused by itself: %s", passedTests, more, strings.Join(failures, ", ")), nil
	}
	return passed("%d tests passed%s", passedTests, more), nil
}

// readTests reads what go test -json prints: of a test with parts only the parts
// count.
func readTests(out []byte) (passed int, failures, skipped []string) {
	results := map[string]string{}
	for line := range bytes.Lines(out) {
		var e struct{ Action, Test string }
		if json.Unmarshal(line, &e) == nil && e.Test != "" && slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
			results[e.Test] = e.Action
		}
	}
	parts := map[string]string{} // a failed part of each test that has one
	for test, action := range results {
		for parent := test; action == "fail" && strings.Contains(parent, "/"); {
			parent = parent[:strings.LastIndex(parent, "/")]
			parts[parent] = test
		}
	}
	for test, action := range results {
		switch {
		case action == "pass":
			passed++
		case action == "skip":
			skipped = append(skipped, test)
		case parts[test] == "":
			failures = append(failures, test)
		}
	}
	slices.Sort(failures)
	return passed, failures, skipped
}
