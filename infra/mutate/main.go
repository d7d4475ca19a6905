// Command mutate changes conditions of the functions, of shared packages, of the
// operator's command and of the authorizer, one at a time and chosen at random. It reports
// each change that no test of the same package notices; a command is tested as one module.
// With -simulated it changes only code that requests run, and the simulation alone must
// notice. People decide whether such a change has an effect. The working tree does not
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
	"path/filepath"
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
	simulated := flag.Bool("simulated", false, "mutate what requests pass through, and let the simulation alone notice")
	lists := flag.String("planted", "", "simulate with each mutant of these lists instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	try := func() error { return run(ctx, *n, *seed, *only, *timeout, *simulated) }
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

// ownTests are the tests of the mutant's package. Those of a command's main package cover
// its whole module.
func ownTests(m mutant) []judge {
	for _, command := range commands {
		if strings.HasPrefix(m.file, command+"/") {
			return []judge{{command, []string{"."}}}
		}
	}
	return []judge{{".", []string{"./" + filepath.Dir(m.file)}}}
}

func run(ctx context.Context, n int, seed uint64, only string, timeout time.Duration, simulated bool) error {
	mutants, err := find(only, append(commands, "functions", "shared")...)
	if err != nil {
		return err
	}
	judges := ownTests
	if simulated {
		if judges, err = simulations(ctx); err != nil {
			return err
		}
		mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return judges(m) == nil })
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
		failed   error
		workers  sync.WaitGroup
	)
	drawn := make(chan mutant)
	for range together {
		workers.Go(func() {
			for m := range drawn {
				alive, err := m.survives(ctx, timeout, judges(m))
				mu.Lock()
				if err != nil {
					failed = err
				} else if alive {
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
	fmt.Printf("%d of %d survived, %s\n", survived, len(mutants), time.Since(begun).Round(time.Second))
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

// survives reports whether all tests pass with the mutant.
func (m mutant) survives(ctx context.Context, timeout time.Duration, judges []judge) (bool, error) {
	for _, j := range judges {
		out, err := m.run(ctx, timeout, j)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case strings.Contains(out, "[build failed]"):
			return false, fmt.Errorf("%s:%d does not compile with %s:\n%s", m.file, m.line, m.now, out)
		case err != nil:
			return false, nil
		}
	}
	return true, nil
}
