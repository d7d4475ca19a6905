package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// readyTime bounds one start.
const readyTime = 10 * time.Second

// lambda is a Lambda Runtime API that only notes when it is first asked for work.
type lambda struct {
	server *httptest.Server
	asked  chan time.Time
}

func newLambda() *lambda {
	l := &lambda{asked: make(chan time.Time, 1)}
	l.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/invocation/next") {
			l.asked <- time.Now()
		}
		<-r.Context().Done() // there is no work
	}))
	return l
}

// coldStart is the time from the start of the process to its first request for
// work, its warm-up included.
func (l *lambda) coldStart(ctx context.Context, binary, services string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(l.server.URL, "http://"), "AWS_LAMBDA_LOG_FORMAT=JSON",
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret",
		"AWS_ENDPOINT_URL_DYNAMODB=" + services, "AWS_ENDPOINT_URL_KMS=" + services, "AWS_ENDPOINT_URL_S3=" + services,
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
	case at := <-l.asked:
		return at.Sub(begin), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%s never asked for work: %w", binary, ctx.Err())
	}
}

// coldStarts starts function and baseline in turn, so that both meet the same
// weather, and compares each start with its neighbour.
func coldStarts(ctx context.Context, w io.Writer, pairs []pair, runs int) error {
	services := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer services.Close()
	l := newLambda()
	defer l.server.CloseClientConnections()
	_, _ = fmt.Fprintf(w, "cold start, %d each\tfunction\tminimal\tratio\tgoal\n", runs)
	for _, p := range pairs {
		var ours, theirs []time.Duration
		var ratios []float64
		for i := range runs + 1 {
			a, err := l.coldStart(ctx, p.function, services.URL)
			if err != nil {
				return err
			}
			b, err := l.coldStart(ctx, p.baseline, services.URL)
			if err != nil {
				return err
			}
			if i > 0 { // the first start reads the binary from disk
				ours, theirs, ratios = append(ours, a), append(theirs, b), append(ratios, float64(a)/float64(b))
			}
		}
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\t%.2f\t1.1\n", p.operation, spread(ours), spread(theirs), median(ratios))
	}
	return nil
}

// spread is the median of times, with the least and the greatest.
func spread(times []time.Duration) string {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%.2f ms (%.2f–%.2f)", ms(median(times)), ms(slices.Min(times)), ms(slices.Max(times)))
}

func median[N float64 | time.Duration](values []N) N {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
