// Command bench measures the functions against minimal programs with the same
// AWS clients, JSON decoder and warm-up, in one run and as ratios, since
// machines differ and are shared: cold start, size, and what a warm request
// takes beyond its AWS calls. It reports and judges nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"text/tabwriter"
)

// pair is a function and the minimal program it is measured against.
type pair struct{ operation, function, baseline string }

func main() {
	functions := flag.String("functions", ".build/functions", "folder with <logical id>/bootstrap")
	baselines := flag.String("baselines", ".build/baseline", "folder with the minimal programs")
	runs := flag.Int("runs", 60, "cold starts of each program")
	rounds := flag.Int("rounds", 11, "runs of each benchmark of a warm request")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	pairs := []pair{
		{"GET", filepath.Join(*functions, "GetSyncJobFunction", "bootstrap"), filepath.Join(*baselines, "get-sync-job")},
		{"POST", filepath.Join(*functions, "CreateByokKeyFunction", "bootstrap"), filepath.Join(*baselines, "create-byok-key")},
		{"DELETE", filepath.Join(*functions, "DeleteFileFunction", "bootstrap"), filepath.Join(*baselines, "delete-file")},
	}
	requests := []request{
		{"GET", "get-sync-job", "BenchmarkRead"},
		{"POST", "create-byok-key", "BenchmarkCreate"},
		{"POST with Idempotency-Key", "create-byok-key", "BenchmarkCreateOnce"},
		{"DELETE", "delete-file", "BenchmarkDelete"},
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "%s %s/%s, %d cores\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	err := errors.Join( // what can be measured is told
		coldStarts(ctx, table, pairs, *runs),
		sizes(table, pairs),
		warm(ctx, table, requests, *rounds),
		table.Flush(),
	)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err) // nowhere else to tell it
		os.Exit(1)
	}
}
