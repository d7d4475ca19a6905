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
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/load"
	"signalbox.dev/infra/torture/service"
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

// overloads sends a steady load, then more than there is room for, then the
// steady load again.
func overloads(ctx context.Context, t *torture, length time.Duration) (o outcome, err error) {
	state, err := t.state("load")
	if err != nil {
		return o, err
	}
	s, err := service.Start(ctx, service.Config{Root: t.root, State: state, Parameters: load.Parameters()})
	if err != nil {
		return o, err
	}
	r, err := load.Run(ctx, load.Config{
		Service: s, Seed: t.seed, Sustained: length * 10 / 12, Overload: length / 12, Recovery: length / 12, Progress: t.stderr,
	})
	if closing := s.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return o, err
	}
	leaks, err := ledger.Leaks(state)
	o.broken = append(r.Broken, leaks...)
	var detail strings.Builder
	if writing := r.Table(&detail); err == nil {
		err = writing
	}
	o.detail = detail.String()
	for _, p := range r.Phases {
		all := p.All()
		o.rows = append(o.rows, row{
			p.Name, fmt.Sprintf("%d requests, %.0f a second", all.Sent, p.Rate),
			fmt.Sprintf("p50 %v, p99 %v, at most %v; %s", short(all.Quantile(50)), short(all.Quantile(99)), short(all.Max()), all.Answers()),
		})
	}
	var memory []string
	for _, m := range r.Memory {
		memory = append(memory, fmt.Sprintf("%s %.2f", m.Role, m.Ratio()))
	}
	o.rows = append(o.rows, row{
		"memory", "of a process, late over early", strings.Join(memory, ", "),
	}, row{
		"recovery", "from the end of overload", r.Recovery.String(),
	}, row{
		"afterwards", fmt.Sprintf("%d seals opened", r.Audit.Opened),
		fmt.Sprintf("%d acknowledged, %d refused or left alone, %d never answered", r.Audit.Acknowledged, r.Audit.Refused, r.Audit.Uncertain),
	})
	return o, err
}

// short leaves of a latency what anybody wants to know.
func short(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}
