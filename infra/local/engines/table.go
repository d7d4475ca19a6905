package engines

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

type service struct {
	variable string // names an engine of infra/second-opinion, for tests
	// own is the engine of the single-machine edition. Nil means that it runs in this
	// process.
	own func(Config) (program, error)
}

// The indexes of services.
const (
	dynamoDB = iota
	objects
	keys
)

var services = [...]service{
	dynamoDB: {"SIGNALBOX_DYNAMODB", extendDB},
	objects:  {"SIGNALBOX_S3", versityGW},
	keys:     {"SIGNALBOX_KMS", nil},
}

// program returns the engine's program, or nil if it runs in this process.
func (s service) program(c Config) (*program, error) {
	if name := os.Getenv(s.variable); name != "" {
		return secondOpinion(c, name)
	}
	if s.own == nil {
		return nil, nil
	}
	p, err := s.own(c)
	return &p, err
}

// secondOpinion is an engine from infra/second-opinion.
func secondOpinion(c Config, name string) (*program, error) {
	script, err := filepath.Abs(filepath.Join(c.Root, "infra", "second-opinion", "engine"))
	dir := filepath.Join(c.Dir, name)
	return &program{name: name, dir: dir, command: func(ctx context.Context, port string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, script, name, dir, host, port) //nolint:gosec // a script of ours
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		return cmd
	}}, err
}
