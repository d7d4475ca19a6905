// Command mutate changes conditions, sums and statements of the functions, of shared
// packages, of the operator's command and of the authorizer, one at a time and chosen at
// random. It reports each change that neither the tests of the same package nor the
// simulation notice; a command is tested as one module. People decide whether such a change
// has an effect. The working tree does not change (go test -overlay).
//
// A maintained tool, gremlins v0.6.0, was tried: it copies the module for each worker, takes
// its time-out from a run that Go's cache answers, and takes every failure for a find. Of nine
// mutants of shared/limits, whose tests need engines, it called seven timed out. It removes
// no statement.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// together bounds the tests that run at once.
	together = 2
	// memory bounds the address space of each test: a mutated loop may allocate for ever.
	memory = 16 << 30
)

func main() {
	n := flag.Int("n", 200, "mutants to try")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "chooses them")
	only := flag.String("only", "", "mutate the files whose path contains this")
	timeout := flag.Duration("timeout", 5*time.Minute, "bounds the tests of one mutant")
	lists := flag.String("planted", "", "simulate with each mutant of these lists instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	try := func() error { return run(ctx, *n, *seed, *only, *timeout) }
	if *lists != "" {
		try = func() error { return plant(ctx, *lists, *only, *timeout) }
	}
	if err := try(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// judge is a go test that must fail with a mutant.
type judge struct {
	module    string // its folder
	arguments []string
}

func run(ctx context.Context, n int, seed uint64, only string, timeout time.Duration) error {
	mutants, err := find(only, append(commands, "functions", "shared")...)
	if err != nil {
		return err
	}
	judges, err := judges(ctx)
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		return fmt.Errorf("bounding memory: %w", err)
	}
	total, random := len(mutants), rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
	random.Shuffle(total, func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	mutants = mutants[:min(n, total)]
	fmt.Printf("seed %d: %d of %d mutants\n", seed, len(mutants), total)
	if err := unchanged(ctx, mutants, judges); err != nil {
		return err
	}

	begun := time.Now()
	var (
		mu       sync.Mutex
		survived int
		broken   int
		failed   error
		workers  sync.WaitGroup
	)
	drawn := make(chan mutant)
	for range together {
		workers.Go(func() {
			for m := range drawn {
				alive, err := m.survives(ctx, timeout, judges(m))
				mu.Lock()
				switch {
				case errors.Is(err, errBuild):
					broken++
				case err != nil:
					failed = err
				case alive:
					survived++
					fmt.Printf("%s:%d\t%s\t→\t%s\n", m.file, m.line, m.was, m.now)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range mutants {
		drawn <- m
	}
	close(drawn)
	workers.Wait()
	fmt.Printf("%d of %d survived, %d do not compile, %s\n", survived, len(mutants), broken, time.Since(begun).Round(time.Second))
	return failed
}

// unchanged runs the first judge of each mutant without the mutant. If these tests fail,
// they would fail with each mutant.
func unchanged(ctx context.Context, mutants []mutant, judges func(mutant) []judge) error {
	judged := map[string]bool{}
	for _, m := range mutants {
		fastest := judges(m)[0]
		if judged[fmt.Sprint(fastest)] {
			continue
		}
		judged[fmt.Sprint(fastest)] = true
		if out, err := fastest.test(ctx, "-vet=off"); err != nil {
			return fmt.Errorf("the tests fail without a mutant: %w\n%s", err, out)
		}
	}
	return nil
}

// test runs go test with more flags, and returns its output.
func (j judge) test(ctx context.Context, flags ...string) (string, error) {
	arguments := slices.Concat([]string{"test", "-C", j.module, "-count=1"}, flags, j.arguments)
	out, err := exec.CommandContext(ctx, "go", arguments...).CombinedOutput() //nolint:gosec // what is tested is ours
	return string(out), err
}

// errBuild means that a mutant does not compile, like the difference of two texts.
var errBuild = errors.New("it does not compile")

// survives reports whether all tests pass with the mutant.
func (m mutant) survives(ctx context.Context, timeout time.Duration, judges []judge) (bool, error) {
	for _, j := range judges {
		out, err := m.run(ctx, timeout, j)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case strings.Contains(out, "[build failed]"):
			return false, errBuild
		case err != nil:
			return false, nil
		}
	}
	return true, nil
}
