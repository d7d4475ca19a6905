package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// simulations returns the packages with a simulation that use a folder, for each folder.
func simulations(ctx context.Context) (map[string][]string, error) {
	const format = "{{.ImportPath}} {{join .Deps \" \"}}"
	out, err := exec.CommandContext(ctx, "go", "list", "-f", format, "./functions/...", "./"+registry).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages that requests pass through: %w", err)
	}
	players := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		used := strings.Fields(strings.ReplaceAll(line, "signalbox.dev/", "./"))
		for _, folder := range used {
			players[folder] = append(players[folder], used[0])
		}
	}
	return players, nil
}

// simulation is the test that plays a package's simulation.
const simulation = "^TestSimulation$"

// registry has the operator's commands that are simulated.
const registry = "shared/auth"

// onThePath reports whether simulated requests or commands pass through the mutant's
// file. Package boot only starts a function, and operator_restore.go reads tables that the
// tests of the operator's command damage.
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

// simulate plays the simulations with the mutant. It begins with few schedules, and goes
// on with all if none fails.
func (m mutant) simulate(ctx context.Context, timeout time.Duration, players []string) (v verdict, err error) {
	arguments := append([]string{"-run", simulation}, players...)
	if v, err = m.judge(ctx, ".", timeout, arguments...); v == alive && err == nil {
		v, err = m.judge(ctx, ".", timeout, append(arguments, "-args", "-simulate")...)
	}
	return v, err
}
