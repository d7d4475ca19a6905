// Command bench measures the functions against a minimal program with their AWS clients,
// JSON decoder and warm-up, in one run and as ratios, since machines differ and are
// shared: cold start and size. What a warm request takes beyond its AWS calls is measured
// by the benchmarks of each function.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// function is a function's folder and its binary.
type function struct{ name, binary string }

func main() {
	folder := flag.String("functions", ".build/functions", "folder with <logical id>/bootstrap")
	minimal := flag.String("minimal", ".build/minimal", "the minimal program")
	runs := flag.Int("runs", 60, "cold starts of each program")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	folders, err := os.ReadDir("functions")
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	var functions []function
	for _, f := range folders {
		functions = append(functions, function{f.Name(), filepath.Join(*folder, logicalID(f.Name()), "bootstrap")})
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "%s %s/%s, %d cores\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	err = errors.Join( // each part that can be measured is printed
		coldStarts(ctx, table, functions, *minimal, *runs),
		sizes(table, functions, *minimal),
		table.Flush(),
	)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// logicalID is that of a function in template.yaml: get-sync-job is GetSyncJobFunction.
func logicalID(folder string) string {
	var id strings.Builder
	for word := range strings.SplitSeq(folder, "-") {
		id.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return id.String() + "Function"
}

// sizes compares the sizes of the binaries.
func sizes(w io.Writer, functions []function, minimal string) error {
	_, _ = fmt.Fprint(w, "\nbinary\tfunction\tminimal\tratio\tgoal\n")
	least, err := os.Stat(minimal)
	if err != nil {
		return err
	}
	for _, f := range functions {
		own, err := os.Stat(f.binary)
		if err != nil {
			return err
		}
		a, b := float64(own.Size())/1e6, float64(least.Size())/1e6
		_, _ = fmt.Fprintf(w, "  %s\t%.2f MB\t%.2f MB\t%.2f\t1.1\n", f.name, a, b, a/b)
	}
	return nil
}

// coldStarts starts function and minimal program by turns and compares each start with its
// neighbour: the load of the machine is the same for both.
func coldStarts(ctx context.Context, w io.Writer, functions []function, minimal string, runs int) error {
	aws := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer aws.Close()
	asked := make(chan time.Time, 1)
	lambda := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/invocation/next") {
			asked <- time.Now()
		}
		<-r.Context().Done() // there is no work
	}))
	defer lambda.CloseClientConnections()
	_, _ = fmt.Fprintf(w, "cold start, %d each\tfunction\tminimal\tratio\tgoal\n", runs)
	for _, f := range functions {
		var own, least []time.Duration
		var ratios []float64
		for i := range runs + 1 {
			a, err := coldStart(ctx, f.binary, lambda.URL, aws.URL, asked)
			if err != nil {
				return err
			}
			b, err := coldStart(ctx, minimal, lambda.URL, aws.URL, asked)
			if err != nil {
				return err
			}
			if i > 0 { // the first start reads the binary from disk
				own, least, ratios = append(own, a), append(least, b), append(ratios, float64(a)/float64(b))
			}
		}
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\t%.2f\t1.1\n", f.name, spread(own), spread(least), median(ratios))
	}
	return nil
}

// coldStart returns the time from the start of the process to its first request
// for work, its warm-up included.
func coldStart(ctx context.Context, binary, lambda, aws string, asked <-chan time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(lambda, "http://"), "AWS_LAMBDA_LOG_FORMAT=JSON",
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret",
		"AWS_ENDPOINT_URL_DYNAMODB=" + aws, "AWS_ENDPOINT_URL_KMS=" + aws, "AWS_ENDPOINT_URL_S3=" + aws,
		"ACCESS_TABLE=a", "SYNC_JOBS_TABLE=a", "CREDENTIALS_TABLE=a", "CONTROL_TABLE=a", "FILES_BUCKET=bucket", "SEALING_KEY_ARN=a",
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting %s: %w", binary, err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	select {
	case at := <-asked:
		return at.Sub(begin), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%s never asked for work: %w", binary, ctx.Err())
	}
}

// spread is the median of times, with the least and the greatest.
func spread(times []time.Duration) string {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%.2f ms (%.2f–%.2f)", ms(median(times)), ms(slices.Min(times)), ms(slices.Max(times)))
}

func median[N cmp.Ordered](values []N) N { return slices.Sorted(slices.Values(values))[len(values)/2] }
