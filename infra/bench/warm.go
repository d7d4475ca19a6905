package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// request is a benchmark of functions/<folder>: its handler, and the AWS calls of
// the handler made bare, both answered at once.
type request struct{ name, folder, benchmark string }

// measured is what a benchmark says of one request: value by unit.
type measured map[string]float64

// warm runs the benchmarks in rounds, and compares handler and calls within each
// round, so that both meet the same weather. It does so on one core, where calls
// made side by side hide none of their work: a small function has less than that.
func warm(ctx context.Context, w io.Writer, requests []request, rounds int) error {
	folder, err := os.MkdirTemp("", "signalbox-bench")
	if err != nil {
		return fmt.Errorf("building the benchmarks: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", folder+"/", "./functions/...") //nolint:gosec // a folder of ours
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the benchmarks: %w\n%s", err, out)
	}
	_, _ = fmt.Fprintf(w, "\nwarm request, %d rounds on one core, AWS answering at once\thandler\tits calls, bare\tratio\n", rounds)
	for _, r := range requests {
		var handler, calls []measured
		for range rounds {
			h, c, err := round(ctx, filepath.Join(folder, r.folder+".test"), r.benchmark)
			if err != nil {
				return err
			}
			handler, calls = append(handler, h), append(calls, c)
		}
		row(w, r.name+", time", "%.0f µs", 1e3, "ns/op", handler, calls)
		row(w, r.name+", memory", "%.0f kB", 1e3, "B/op", handler, calls)
		row(w, r.name+", allocations", "%.0f", 1, "allocs/op", handler, calls)
	}
	return nil
}

func row(w io.Writer, name, format string, scale float64, unit string, handler, calls []measured) {
	var ours, theirs, ratios []float64
	for i := range handler {
		a, b := handler[i][unit], calls[i][unit]
		ours, theirs, ratios = append(ours, a/scale), append(theirs, b/scale), append(ratios, a/b)
	}
	_, _ = fmt.Fprintf(w, "  %s\t"+format+"\t"+format+"\t%.2f\n", name, median(ours), median(theirs), median(ratios))
}

// round runs one benchmark. Handler and calls must have asked AWS as often, or
// their comparison would mean nothing.
func round(ctx context.Context, binary, benchmark string) (handler, calls measured, err error) {
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^$", "-test.bench", "^"+benchmark+"$", "-test.benchtime", "500x", "-test.cpu", "1") //nolint:gosec // a binary of ours
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, nil, fmt.Errorf("running %s: %w\n%s", benchmark, err, out)
	}
	results, err := parse(out)
	if err != nil {
		return nil, nil, err
	}
	handler, calls = results[benchmark+"/handler"], results[benchmark+"/calls"]
	if handler["calls/op"] == 0 || handler["calls/op"] != calls["calls/op"] {
		return nil, nil, fmt.Errorf("%s: the handler makes %v AWS calls, it is compared with %v", benchmark, handler["calls/op"], calls["calls/op"])
	}
	return handler, calls, nil
}

// parse reads the lines of a benchmark: its name, how often it ran, and pairs of
// value and unit.
func parse(out []byte) (map[string]measured, error) {
	results := map[string]measured{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		m := measured{}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
			}
			m[fields[i+1]] = value
		}
		results[fields[0]] = m
	}
	return results, nil
}
