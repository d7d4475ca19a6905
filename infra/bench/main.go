// Command bench measures the functions against minimal programs with the same
// AWS clients, JSON decoder and warm-up, in one run and as ratios, since
// machines differ and are shared: cold start, size, and what a warm request
// takes beyond its AWS calls. It reports and judges nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
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
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	pairs := []pair{
		{"GET", filepath.Join(*functions, "GetSyncJobFunction", "bootstrap"), filepath.Join(*baselines, "get-sync-job")},
		{"POST", filepath.Join(*functions, "CreateByokKeyFunction", "bootstrap"), filepath.Join(*baselines, "create-byok-key")},
		{"DELETE", filepath.Join(*functions, "DeleteFileFunction", "bootstrap"), filepath.Join(*baselines, "delete-file")},
	}
	if err := run(ctx, os.Stdout, pairs, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, pairs []pair, runs int) error {
	fmt.Fprintf(w, "%s %s/%s, %d cores\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if err := coldStarts(ctx, table, pairs, runs); err != nil {
		return err
	}
	if err := sizes(table, pairs); err != nil {
		return err
	}
	if err := warm(ctx, table); err != nil {
		return err
	}
	return table.Flush()
}
