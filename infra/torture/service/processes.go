package service

import (
	"context"
	"path/filepath"

	"github.com/shirou/gopsutil/v4/process"
)

// Process is one process of a service.
type Process struct {
	// Role is "edition", the name of an engine's program, or the logical id of a
	// function.
	Role string
	// Function says that it is an instance of a function.
	Function bool

	process *process.Process
}

// edition is the role of the process that runs all others, the gateway and KMS.
const edition = "edition"

// Processes are those that run at the moment, the edition itself first. It is
// empty while the edition is being started again.
func (s *Service) Processes(ctx context.Context) []Process {
	s.mu.Lock()
	pid := s.running.cmd.Process.Pid
	s.mu.Unlock()
	whole, err := process.NewProcessWithContext(ctx, int32(pid)) //nolint:gosec // a process id fits
	if err != nil {
		return nil
	}
	all := []Process{{Role: edition, process: whole}}
	own, err := whole.ExeWithContext(ctx)
	if err != nil {
		return nil
	}
	children, err := whole.ChildrenWithContext(ctx)
	if err != nil {
		return all
	}
	for _, child := range children {
		program, err := child.ExeWithContext(ctx)
		if err != nil || program == own {
			continue // it has ended, or has not become what it is going to be
		}
		p := Process{Role: filepath.Base(program), process: child}
		if p.Role == "bootstrap" {
			p.Role, p.Function = filepath.Base(filepath.Dir(program)), true
		}
		all = append(all, p)
	}
	return all
}

// Kill kills the process as kill -9 does, and reports whether it was there.
func (p Process) Kill(ctx context.Context) bool { return p.process.KillWithContext(ctx) == nil }

// Engine says that the process is an engine, which the edition starts again.
func (p Process) Engine() bool { return !p.Function && p.Role != edition }
