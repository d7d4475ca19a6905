// Command mutate changes conditions of the functions, of shared packages, of the
// operator's command and of the authorizer, one at a time and chosen at random. It reports
// each change that no test of the same package notices; a command is tested as one module.
// With -simulated it changes only code that requests run, and the simulation alone must
// notice. A reader decides whether a change has an effect. The working tree does not
// change (go test -overlay).
package main

import (
	"context"
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
	// memory bounds their address space each: a mutated loop may allocate for ever.
	memory = 16 << 30
)

func main() {
	n := flag.Int("n", 200, "mutants to try")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "chooses them")
	only := flag.String("only", "", "mutate the files whose path contains this")
	timeout := flag.Duration("timeout", 5*time.Minute, "bounds the tests of one mutant")
	simulated := flag.Bool("simulated", false, "mutate what requests pass through, and let the simulation alone notice")
	list := flag.String("planted", "", "simulate with each mutant of this list instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	try := func() error { return run(ctx, *n, *seed, *only, *timeout, *simulated) }
	if *list != "" {
		try = func() error { return plant(ctx, *list, *only, *timeout) }
	}
	if err := try(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, seed uint64, only string, timeout time.Duration, simulated bool) error {
	mutants, err := find(only, append(commands, "functions", "shared")...)
	if err != nil {
		return err
	}
	var players map[string][]string
	if simulated {
		if players, err = simulations(ctx); err != nil {
			return err
		}
		mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return !m.onThePath() || players[m.folder()] == nil })
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		return fmt.Errorf("bounding memory: %w", err)
	}
	total, random := len(mutants), rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
	random.Shuffle(total, func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	fmt.Printf("seed %d: %d of %d mutants\n", seed, min(n, total), total)
	test := func(m mutant) (verdict, error) { return m.test(ctx, timeout) }
	if simulated {
		test = func(m mutant) (verdict, error) { return m.simulate(ctx, timeout, players[m.folder()]) }
	}
	folders := map[string][]string{} // whose tests judge, of each module
	for _, m := range mutants[:min(n, total)] {
		if module, folder := m.tests(); simulated {
			folders["."] = append(folders["."], players[m.folder()]...)
		} else {
			folders[module] = append(folders[module], folder)
		}
	}
	if err := unchanged(ctx, folders, simulated); err != nil {
		return err
	}

	begun := time.Now()
	var (
		mu                       sync.Mutex
		drawn, invalid, survived int
		failed                   error
		workers                  sync.WaitGroup
	)
	draw := func() (m mutant, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if drawn-invalid == n || drawn == total || failed != nil || ctx.Err() != nil {
			return m, false
		}
		drawn++
		return mutants[drawn-1], true
	}
	for range together {
		workers.Go(func() {
			for m, ok := draw(); ok; m, ok = draw() {
				verdict, err := test(m)
				mu.Lock()
				switch {
				case err != nil:
					failed = err
				case verdict == uncompiled:
					invalid++ // another is drawn for it
				case verdict == alive:
					survived++
					fmt.Printf("%s:%d\t%s\t→\t%s\n", m.file, m.line, m.was, m.now)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if failed == nil {
		failed = ctx.Err()
	}
	fmt.Printf("%d of %d survived, %s\n", survived, drawn-invalid, time.Since(begun).Round(time.Second))
	return failed
}

// unchanged runs the tests that judge without a mutant, or their simulations alone. Tests
// that fail then would fail with each mutant.
func unchanged(ctx context.Context, folders map[string][]string, simulated bool) error {
	for module, of := range folders {
		slices.Sort(of)
		arguments := []string{"test", "-C", module, "-vet=off", "-count=1"}
		if simulated {
			arguments = append(arguments, "-run", simulation)
		}
		arguments = append(arguments, slices.Compact(of)...)
		if out, err := exec.CommandContext(ctx, "go", arguments...).CombinedOutput(); err != nil { //nolint:gosec // folders of ours
			return fmt.Errorf("the tests fail without a mutant: %w\n%s", err, out)
		}
	}
	return nil
}

type verdict int

const (
	killed verdict = iota
	alive
	uncompiled
)

// test runs the tests of the mutant's package with the mutant in it.
func (m mutant) test(ctx context.Context, timeout time.Duration) (verdict, error) {
	module, tests := m.tests()
	return m.judge(ctx, module, timeout, tests)
}

// judge runs go test in the module with the mutant in its code.
func (m mutant) judge(ctx context.Context, module string, timeout time.Duration, arguments ...string) (verdict, error) {
	out, err := m.run(ctx, module, timeout, arguments...)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err == nil:
		return alive, nil
	case strings.Contains(out, "[build failed]"):
		return uncompiled, nil
	default:
		return killed, nil
	}
}
