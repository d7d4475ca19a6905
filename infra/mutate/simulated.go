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

// simulations returns the judges of each mutant: the simulations of the packages that use
// its code, with few schedules, then with all.
func simulations(ctx context.Context) (func(mutant) []judge, error) {
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
		of := players["./"+filepath.Dir(m.file)]
		if of == nil || !m.onThePath() {
			return nil
		}
		few := slices.Concat([]string{"-run", simulation}, of)
		return []judge{{".", few}, {".", slices.Concat(few, []string{"-args", "-simulate"})}}
	}, nil
}

// onThePath reports whether simulated requests or commands pass through the mutant's
// file. Package boot only starts a function. The operator's own tests cover
// operator_restore.go on damaged tables.
func (m mutant) onThePath() bool {
	folder, name := filepath.Split(m.file)
	switch {
	case name == "router.go", name == "operator_restore.go", filepath.Base(folder) == "boot":
		return false
	case strings.HasPrefix(name, "operator"):
		return filepath.Clean(folder) == registry
	}
	return true
}
