// Package bench measures the cold start and the size of the functions beside those of a
// minimal program with their AWS clients, JSON decoder and warm-up. `infra/test/bench/run` prints the
// ratios, because machines differ and are shared. The benchmarks of each function measure
// the time of a warm request beyond its AWS calls.
package bench

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const built = "../../../.build/"

// Each function starts just after the minimal program: the machine has the same load for
// both.
func BenchmarkColdStart(b *testing.B) {
	functions, err := filepath.Glob(built + "functions/*/bootstrap")
	if err != nil || len(functions) == 0 {
		b.Fatalf("no function is built, %v", err)
	}
	for _, binary := range functions {
		name := filepath.Base(filepath.Dir(binary))
		b.Run(name+"/by=minimal", func(b *testing.B) { measure(b, built+"minimal") })
		b.Run(name+"/by=function", func(b *testing.B) { measure(b, binary) })
	}
}

// measure reports the size of a binary, and the median time from the start of its process
// to its first request for work, its warm-up included.
func measure(b *testing.B, binary string) {
	b.Helper()
	file, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
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
	start := func() time.Duration {
		ctx, kill := context.WithTimeout(b.Context(), 10*time.Second)
		cmd := exec.CommandContext(ctx, binary)
		cmd.Env = []string{
			"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(lambda.URL, "http://"), "AWS_LAMBDA_LOG_FORMAT=JSON",
			"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret",
			"AWS_ENDPOINT_URL_DYNAMODB=" + aws.URL, "AWS_ENDPOINT_URL_KMS=" + aws.URL, "AWS_ENDPOINT_URL_S3=" + aws.URL,
			"ACCESS_TABLE=a", "SYNC_JOBS_TABLE=a", "CREDENTIALS_TABLE=a", "CONTROL_TABLE=a", "FILES_BUCKET=bucket", "SEALING_KEY_ARN=a",
		}
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() {
			kill()
			_ = cmd.Wait()
		}()
		select {
		case at := <-asked:
			return at.Sub(begin)
		case <-ctx.Done():
			b.Fatalf("%s never asked for work", binary)
			return 0
		}
	}
	start() // reads the binary from the disk
	var times []time.Duration
	for b.Loop() {
		times = append(times, start())
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "ns/op")
	b.ReportMetric(float64(file.Size()), "bytes")
}
