package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/local/demo"
	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/local/provision"
	"signalbox.dev/infra/local/state"
	"signalbox.dev/infra/local/template"
)

// fillEngines starts the engines and makes the template's tables, keys and bucket in them,
// and the demo account.
func (s *Server) fillEngines(ctx context.Context, lock *os.File, t *template.Template) (template.Resources, error) {
	if err := state.Describe(lock, s.BaseURL); err != nil {
		return nil, fmt.Errorf("locking the state folder: %w", err)
	}
	dir := s.options.State
	var err error
	if s.engines, err = engines.Start(ctx, engines.Config{Dir: filepath.Join(dir, "engines"), Root: s.options.Root}); err != nil {
		return nil, fmt.Errorf("starting the engines: %w", err)
	}
	s.atEnd(func() error { s.engines.Close(); return nil })
	made, err := provision.Make(ctx, t, s.engines.Config(), dir)
	if err != nil {
		return nil, err
	}
	outputs := t.Outputs(made)
	outputs["ApiBaseUrl"] = s.BaseURL
	// Other programs on this machine need it, such as the operator's command.
	stack := awsclients.Stack[map[string]string]{Engines: s.engines.Engines, Outputs: outputs}
	if err := state.Write(filepath.Join(dir, "stack.json"), stack); err != nil {
		return nil, fmt.Errorf("writing the stack's outputs: %w", err)
	}
	s.account = demo.New(s.engines.Config(), outputs, filepath.Join(dir, "demo.json"))
	s.Demo, err = s.account.Ensure(ctx)
	return made, err
}

// lost lists everything that a reset removes.
const lost = ", which removes every account, credential, sync job and file in it"

// advise adds advice for the user to the error of a start, unless the error is the advice.
func (s *Server) advise(ctx context.Context, err error) error {
	dir := s.options.State
	_, isConfig := errors.AsType[engines.ConfigError](err)
	damaged, isDamaged := errors.AsType[*state.Damage](err)
	switch {
	case ctx.Err() != nil, isConfig, errors.Is(err, state.ErrInUse):
		return err
	case state.IsFull(dir):
		return diskFull(dir, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the folder %s or something in it belongs to another user, or cannot be written: %w", dir, err)
	case isDamaged && damaged.Renewable:
		return fmt.Errorf("%w: remove this file; the next start makes a new demo account and keeps everything else", err)
	case isDamaged:
		return fmt.Errorf("the state in %s is damaged: %w. Put back a copy of it if you have one. Otherwise: make reset%s", dir, err, lost)
	case s.used:
		return fmt.Errorf("%w. The logs are in %[2]s/logs and %[2]s/engines/*/*.log. "+
			"Try again first. If the engine cannot use what is stored there: put back a copy, or make reset%[3]s", err, dir, lost)
	}
	return err
}

func diskFull(dir string, err error) error {
	return fmt.Errorf("the disk is full: make room for %s (%w)", dir, err)
}

// Reset removes the state folder, unless a local server uses it.
func Reset(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := state.Lock(dir)
	if errors.Is(err, state.ErrInUse) {
		return err
	}
	if err != nil {
		return os.RemoveAll(dir) // it cannot be locked, so no local server uses it
	}
	return errors.Join(os.RemoveAll(dir), lock.Close())
}
