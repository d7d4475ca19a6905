package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// simulation is the test that plays a package's simulation.
const simulation = "^TestSimulation$"

// registry has the operator's commands that are simulated.
const registry = "shared/auth"

// judges returns the judges of each mutant: the tests of its package, which for the main
// package of a command cover the whole module; then the simulations of the packages that use
// its code, with few schedules, then with all.
func judges(ctx context.Context) (func(mutant) []judge, error) {
	const format = "{{.ImportPath}} {{join .Deps \" \"}}"
	out, err := exec.CommandContext(ctx, "go", "list", "-f", format, "./functions/...", "./"+registry).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages that requests pass through: %w", err)
	}
	players := map[string][]string{} // of each folder
	for line := range strings.Lines(string(out)) {
		used := strings.Fields(strings.ReplaceAll(line, "signalbox.dev/", "./"))
		for _, folder := range used {
			players[folder] = append(players[folder], used[0])
		}
	}
	return func(m mutant) []judge {
		for _, command := range commands {
			if strings.HasPrefix(m.file, command+"/") {
				return []judge{{".", []string{"./" + command}}}
			}
		}
		folder := "./" + filepath.Dir(m.file)
		all := []judge{{".", []string{folder}}}
		if of := players[folder]; of != nil {
			few := slices.Concat([]string{"-run", simulation}, of)
			all = append(all, judge{".", few}, judge{".", slices.Concat(few, []string{"-args", "-simulate"})})
		}
		return all
	}, nil
}
