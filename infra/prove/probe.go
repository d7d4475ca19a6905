package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// verdict is the result of a probe.
type verdict string

const (
	// pass: AWS answered as expected.
	pass verdict = "PASS"
	// differs: it answered otherwise, in a way that the product handles too.
	differs verdict = "DIFFERS"
	// fail: it answered in a way that the product does not handle.
	fail verdict = "FAIL"
	// notAsked: there was no way to ask. The reason stands where else stands what
	// was seen.
	notAsked verdict = "NOT ASKED"
)

// finding is what a probe saw, and what that means.
type finding struct {
	verdict verdict
	seen    string
}

func passed(format string, args ...any) finding { return finding{pass, fmt.Sprintf(format, args...)} }
func differing(format string, args ...any) finding {
	return finding{differs, fmt.Sprintf(format, args...)}
}
func failed(format string, args ...any) finding { return finding{fail, fmt.Sprintf(format, args...)} }
func unasked(format string, args ...any) finding {
	return finding{notAsked, fmt.Sprintf(format, args...)}
}

// stage is the deployment at which a probe asks.
type stage int

const (
	// first: as samconfig.toml deploys dev.
	first stage = iota
	// second: with versions in the bucket, a firewall, a low throttle and the other
	// architecture.
	second
	// third: a function that crashes is deployed behind a canary.
	third
	// last: what logs, metrics and alarms have of all that.
	last
)

// probe is one question to AWS.
type probe struct {
	id string
	// asks is what nobody has seen. The documents list it.
	asks string
	// expects is the answer that PASS stands for.
	expects string
	// source is what the expectation rests on: a page of AWS's documentation, or the
	// answers that the product handles.
	source string
	stage  stage
	// live: may be asked of a stack in production, with a test account.
	live bool
	ask  func(context.Context, *asker) (finding, error)
	// wrong are switches of the stand-in, each of which changes one answer, and the
	// verdict of this probe under it. Those of all other probes stay the same.
	wrong map[string]verdict
}

// all are the probes, in the order in which they are asked.
func all() []probe {
	probes := slices.Concat(gatewayProbes(), storageProbes(), deploymentProbes(), observationProbes())
	slices.SortStableFunc(probes, func(a, b probe) int { return cmp.Compare(a.stage, b.stage) })
	return probes
}

// result is a probe that was asked.
type result struct {
	ID      string  `json:"id"`
	Verdict verdict `json:"verdict"`
	Seen    string  `json:"seen"`
}

// askOne asks. An error is a FAIL: a probe that could not finish has shown nothing.
func askOne(ctx context.Context, p probe, a *asker) result {
	f, err := p.ask(ctx, a)
	switch {
	case ctx.Err() != nil:
		f = unasked(interrupted)
	case err != nil:
		f = failed("could not be asked: %v", err)
	}
	return result{ID: p.id, Verdict: f.verdict, Seen: a.clean(f.seen)}
}

// cell makes text fit into a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(strings.TrimSpace(text))
}

// markdown is the table of results.
func markdown(title string, probes []probe, results []result) string {
	var b strings.Builder
	count := map[verdict]int{}
	for _, r := range results {
		count[r.Verdict]++
	}
	fmt.Fprintf(&b, "%s\n\n%d PASS, %d DIFFERS, %d FAIL, %d NOT ASKED.\n\n", title, count[pass], count[differs], count[fail], count[notAsked])
	b.WriteString("| probe | result | asked | expected | seen |\n|---|---|---|---|---|\n")
	for _, r := range results {
		i := slices.IndexFunc(probes, func(p probe) bool { return p.id == r.ID })
		p := probes[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.ID, r.Verdict, cell(p.asks), cell(p.expects), cell(r.Seen))
	}
	return b.String()
}

// catalogue is the list of probes that infra/prove/PROBES.md holds.
func catalogue() string {
	var b strings.Builder
	b.WriteString(`# What nobody has seen on AWS, and the probe that asks

No AWS account has been asked so far. ` + "`make prove STACK=signalbox-prove`" + ` asks each of these; DIFFERS is an answer other than the expected one that the product
handles too. In the last column are the switches of the stand-in that change just this answer, and what the probe then reports: a test
turns each of them on. This file is what ` + "`go run . list`" + ` prints in ` + "`infra/prove`" + `.

| probe | asked | expected | source | asked by ` + "`make verify`" + ` | shown wrong by |
|---|---|---|---|---|---|
`)
	for _, p := range all() {
		var wrong []string
		for name, v := range p.wrong {
			wrong = append(wrong, fmt.Sprintf("%s: %s", name, v))
		}
		slices.Sort(wrong)
		live := ""
		if p.live {
			live = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", p.id, cell(p.asks), cell(p.expects), cell(p.source), live, strings.Join(wrong, "; "))
	}
	return b.String()
}

// interrupted is the reason of probes that Ctrl-C kept from being asked.
const interrupted = "interrupted"
