package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// measured is the result of a benchmark for one request: value by unit.
type measured map[string]float64

// warmRequests runs benchmarks of a handler, and of its AWS calls alone, all
// answered at once, and compares the two within each round, so that the load of
// the machine is the same for both. It does so on one core, where concurrent
// calls hide none of their work.
func warmRequests(ctx context.Context, w io.Writer, rounds int) error {
	folder, err := os.MkdirTemp("", "signalbox-bench")
	if err != nil {
		return fmt.Errorf("building the benchmarks: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", folder+"/", "./functions/...") //nolint:gosec // a folder of ours
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the benchmarks: %w\n%s", err, out)
	}
	_, _ = fmt.Fprintf(w, "\nwarm request, %d rounds on one core, AWS answering at once\thandler\tits calls alone\tratio\n", rounds)
	binaries, _ := filepath.Glob(folder + "/*.test") // the pattern is sound
	for _, binary := range binaries {
		listed, err := exec.CommandContext(ctx, binary, "-test.list", "^Benchmark").Output() //nolint:gosec // a binary of ours
		if err != nil {
			return fmt.Errorf("listing the benchmarks of %s: %w", filepath.Base(binary), err)
		}
		for benchmark := range strings.FieldsSeq(string(listed)) {
			if err := compare(ctx, w, rounds, binary, benchmark); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare writes the rows of one benchmark.
func compare(ctx context.Context, w io.Writer, rounds int, binary, benchmark string) error {
	var handler, calls []measured
	for range rounds {
		h, c, err := round(ctx, binary, benchmark)
		if err != nil {
			return err
		}
		handler, calls = append(handler, h), append(calls, c)
	}
	name := strings.TrimPrefix(benchmark, "Benchmark")
	row(w, name+", time", "%.0f µs", 1e3, "ns/op", handler, calls)
	row(w, name+", memory", "%.0f kB", 1e3, "B/op", handler, calls)
	row(w, name+", allocations", "%.0f", 1, "allocs/op", handler, calls)
	return nil
}

func row(w io.Writer, name, format string, scale float64, unit string, handler, calls []measured) {
	var a, b, ratios []float64
	for i := range handler {
		h, c := handler[i][unit], calls[i][unit]
		a, b, ratios = append(a, h/scale), append(b, c/scale), append(ratios, h/c)
	}
	_, _ = fmt.Fprintf(w, "  %s\t"+format+"\t"+format+"\t%.2f\n", name, median(a), median(b), median(ratios))
}

// round runs one benchmark. Handler and calls must make the same number of calls,
// or their comparison would mean nothing.
func round(ctx context.Context, binary, benchmark string) (handler, calls measured, err error) {
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^$", "-test.bench", "^"+benchmark+"$", "-test.benchtime", "500x", "-test.cpu", "1") //nolint:gosec // a binary of ours
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, nil, fmt.Errorf("running %s: %w\n%s", benchmark, err, out)
	}
	results := map[string]measured{}
	for line := range strings.Lines(string(out)) { // a name, a count, pairs of value and unit
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		m := measured{}
		for i := 2; i+1 < len(fields); i += 2 {
			if m[fields[i+1]], err = strconv.ParseFloat(fields[i], 64); err != nil {
				return nil, nil, fmt.Errorf("reading %q: %w", line, err)
			}
		}
		results[fields[0]] = m
	}
	handler, calls = results[benchmark+"/handler"], results[benchmark+"/calls"]
	if handler["calls/op"] == 0 || handler["calls/op"] != calls["calls/op"] {
		return nil, nil, fmt.Errorf("%s: the handler makes %v AWS calls, it is compared with %v", benchmark, handler["calls/op"], calls["calls/op"])
	}
	return handler, calls, nil
}
