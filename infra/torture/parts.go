package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"signalbox.dev/infra/torture/crash"
	"signalbox.dev/infra/torture/history"
)

// total is the last line of the table that each function's fault test logs.
var total = regexp.MustCompile(`(?m)^\s+all +(\d+) +(\d+) +(\d+) +(\d+)$`)

// faults has every call of every operation fail in every way. These are the
// functions' own tests, with nothing left out.
func faults(ctx context.Context, t *torture, _ time.Duration) (outcome, error) {
	var o outcome
	for _, function := range []string{"get-sync-job", "create-byok-key", "delete-file"} {
		test := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout=30m", "-run=^TestEveryFault$", "./functions/"+function, "-exhaustive") //nolint:gosec // fixed words
		test.Dir = t.root
		var output bytes.Buffer
		test.Stdout, test.Stderr = &output, &output
		err := test.Run()
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			return o, fmt.Errorf("testing %s: %w", function, err)
		}
		for line := range strings.Lines(output.String()) {
			if strings.Contains(line, "--- FAIL: TestEveryFault/") {
				o.broken = append(o.broken, function+": "+strings.TrimSpace(line))
			}
		}
		sums := total.FindStringSubmatch(output.String())
		if sums == nil || err != nil && len(o.broken) == 0 {
			return o, fmt.Errorf("testing %s: %w\n%s", function, err, output.String())
		}
		o.rows = append(o.rows, row{
			function, fmt.Sprintf("%s calls, %s kinds of fault", sums[1], sums[2]), fmt.Sprintf("%s cases, %s survived", sums[3], sums[4]),
		})
	}
	return o, nil
}

// crashes kills under each way in which a bucket may keep versions.
func crashes(ctx context.Context, t *torture, length time.Duration) (outcome, error) {
	var o outcome
	kinds := []string{"Off", "Enabled", "Suspended"}
	for i, versioning := range kinds {
		state, err := t.state("crashes-" + versioning)
		if err != nil {
			return o, err
		}
		r, err := crash.Run(ctx, crash.Config{
			Root: t.root, State: state, Versioning: versioning, Seed: t.seed + uint64(i), Duration: length / time.Duration(len(kinds)),
		})
		o.broken = append(o.broken, r.Broken...)
		if err != nil {
			return o, fmt.Errorf("versioning %s: %w", versioning, err)
		}
		o.rows = append(o.rows, row{
			"versioning " + strings.ToLower(versioning),
			fmt.Sprintf("%d requests; killed: %d functions, %d engines, %d editions", r.Requests, r.Functions, r.Engines, r.Editions),
			fmt.Sprintf("%d acknowledged, %d refused, %d never answered; %d seals opened", r.Acknowledged, r.Refused, r.Uncertain, r.Opened),
		})
	}
	return o, nil
}

// histories are checked as long as there is time.
func histories(ctx context.Context, t *torture, length time.Duration) (outcome, error) {
	state, err := t.state("histories")
	if err != nil {
		return outcome{}, err
	}
	r, err := history.Run(ctx, history.Config{Root: t.root, State: state, Seed: t.seed, Duration: length})
	o := outcome{broken: r.Broken}
	if r.Unexpected > 0 {
		o.broken = append(o.broken, fmt.Sprintf("%d operations failed although nothing was killed", r.Unexpected))
	}
	o.rows = []row{{
		fmt.Sprintf("%d clients", history.Clients),
		fmt.Sprintf("%d operations in %d histories, %d with kills (%d functions, %d engines)",
			r.Operations, r.Rounds, r.Stormy, r.Functions, r.Engines),
		fmt.Sprintf("%d observations of %d objects, all linearizable; %d unanswered", r.Observations, r.Objects, r.Uncertain),
	}}
	if len(r.Broken) > 0 {
		o.rows[0].shown = fmt.Sprintf("%d observations of %d objects, NOT all linearizable", r.Observations, r.Objects)
	}
	return o, err
}
