package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// result is one benchmark's figures: nanoseconds, bytes and allocations a request.
type result struct{ ns, bytes, allocs []float64 }

// warm runs the functions' benchmarks and compares each handler with the AWS
// calls it makes, both answered at once.
func warm(ctx context.Context, w io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", ".", "-benchtime", "2000x", "-count", "5", "./functions/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("running the benchmarks: %w\n%s", err, out)
	}
	results, order, err := parse(out)
	if err != nil {
		return err
	}
	fmt.Fprint(w, "\t\t\t\t\nwarm request, AWS answering at once\thandler\tits calls, bare\tratio\t\n")
	for _, name := range order {
		handler, calls := results[name+"/handler"], results[name+"/calls"]
		if handler == nil || calls == nil {
			return fmt.Errorf("benchmark %s is not whole", name)
		}
		row(w, name+", time", "%.0f µs", 1e3, handler.ns, calls.ns)
		row(w, name+", memory", "%.0f kB", 1e3, handler.bytes, calls.bytes)
		row(w, name+", allocations", "%.0f", 1, handler.allocs, calls.allocs)
	}
	return nil
}

func row(w io.Writer, name, format string, unit float64, ours, theirs []float64) {
	a, b := median(ours), median(theirs)
	fmt.Fprintf(w, "  %s\t"+format+"\t"+format+"\t%.2f\t\n", name, a/unit, b/unit, a/b)
}

// parse reads the lines of go test -bench.
func parse(out []byte) (results map[string]*result, order []string, err error) {
	results = map[string]*result{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var name string
		var n int
		var ns, memory, allocs float64
		line := lines.Text()
		if !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%s %d %f ns/op %f B/op %f allocs/op", &name, &n, &ns, &memory, &allocs); err != nil {
			return nil, nil, fmt.Errorf("reading %q: %w", line, err)
		}
		name = strings.TrimPrefix(name[:strings.LastIndex(name, "-")], "Benchmark")
		r := results[name]
		if r == nil {
			r = &result{}
			results[name] = r
			if test, ok := strings.CutSuffix(name, "/handler"); ok {
				order = append(order, test)
			}
		}
		r.ns, r.bytes, r.allocs = append(r.ns, ns), append(r.bytes, memory), append(r.allocs, allocs)
	}
	if len(order) == 0 {
		return nil, nil, errors.New("no benchmark ran")
	}
	return results, order, nil
}
