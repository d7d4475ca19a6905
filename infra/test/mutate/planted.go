package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// planted is a change that the simulation must notice: a defect that somebody made, or
// may make.
type planted struct {
	mutant

	name     string
	function string // the package whose simulation notices it
}

// readPlanted reads the list testdata/mutants.txt of a package. Each mutant begins with
// "== name", then the file. Each run of lines that begin with "-" is replaced by the run
// after it that begins with "+".
func readPlanted(path string) (list []planted, err error) {
	text, err := os.ReadFile(path) //nolint:gosec // a list of ours
	if err != nil {
		return nil, err
	}
	for _, block := range strings.Split("\n"+string(text), "\n== ")[1:] {
		lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
		if len(lines) < 3 {
			return nil, fmt.Errorf("%s: a mutant is incomplete: %s", path, block)
		}
		p := planted{mutant: mutant{file: lines[1]}, name: lines[0], function: filepath.Dir(filepath.Dir(path))}
		source, err := os.ReadFile(p.file)
		if err != nil {
			return nil, err
		}
		p.end, p.code = len(source), string(source)
		for _, change := range changed.FindAllStringSubmatch(strings.Join(lines[2:], "\n")+"\n", -1) {
			was, now := sign.ReplaceAllString(change[1], ""), sign.ReplaceAllString(change[2], "")
			if times := strings.Count(p.code, was); times != 1 {
				return nil, fmt.Errorf("%s: %s has what the mutant %q replaces %d times:\n%s", path, p.file, p.name, times, was)
			}
			p.code = strings.Replace(p.code, was, now, 1)
		}
		list = append(list, p)
	}
	return list, nil
}

var (
	// changed is a run of lines that begin with "-", and the run after it with "+".
	changed = regexp.MustCompile(`(?m)((?:^-.*\n)+)((?:^\+.*\n)*)`)
	sign    = regexp.MustCompile(`(?m)^[-+]`)
)

// found is the line of the scenario that failed.
var found = regexp.MustCompile(`--- FAIL: TestSimulation/(\S+)`)

// plant runs the simulation with each mutant of the lists, and reports which scenario
// finds it. One that none finds is an error.
func plant(ctx context.Context, lists, only string, timeout time.Duration) error {
	paths, err := filepath.Glob(lists)
	var list []planted
	for _, path := range paths {
		more, failed := readPlanted(path)
		list, err = append(list, more...), cmp.Or(err, failed)
	}
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(p planted) bool { return !strings.Contains(p.name, only) })
	if len(list) == 0 {
		return fmt.Errorf("%s: no mutant has %q in its name", lists, only)
	}
	missed := 0
	for _, p := range list {
		scenario, err := p.simulate(ctx, timeout)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if scenario == "" {
			missed++
			scenario = "NOT FOUND"
		}
		fmt.Printf("%-55s %-16s %s\n", p.name, p.function, scenario)
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d mutants are not found", missed, len(list))
	}
	return nil
}

// simulate plays the function's simulation with the mutant, and returns the scenario
// that finds it, or "".
func (p planted) simulate(ctx context.Context, timeout time.Duration) (string, error) {
	out, err := p.run(ctx, timeout, judge{".", []string{"-run", simulation, "./" + p.function, "-args", "-simulate"}})
	failed := found.FindStringSubmatch(out)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case strings.Contains(out, "[build failed]"):
		return "", fmt.Errorf("it does not compile:\n%s", out)
	case err == nil:
		return "", nil
	case failed == nil:
		return "", fmt.Errorf("the simulation ends before a scenario: %w\n%s", err, out)
	}
	return failed[1], nil
}
