package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"signalbox.dev/infra/local/demo"
	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/local/provision"
	"signalbox.dev/infra/local/state"
	"signalbox.dev/infra/local/template"
)

// fillEngines starts the engines and makes the template's tables, keys and bucket in them,
// and the demo account.
func (e *Server) fillEngines(ctx context.Context, lock *os.File, t *template.Template) (template.Resources, error) {
	dir := e.options.State
	if err := state.Describe(lock, e.BaseURL); err != nil {
		return nil, fmt.Errorf("locking the state folder: %w", err)
	}
	db, err := chooseDynamoDB(e.options)
	if err != nil {
		return nil, err
	}
	if e.engines, err = engines.Start(ctx, engines.Config{
		Dir: filepath.Join(dir, "engines"), Root: e.options.Root, Log: e.journal.log, DynamoDB: db.Endpoint,
	}); err != nil {
		return nil, fmt.Errorf("starting the engines: %w", err)
	}
	e.atEnd(func() error { e.engines.Close(); return nil })
	if db != (elsewhere{}) {
		// Before any table is made: otherwise nobody could name a table after a crash.
		if err := state.Write(elsewhereFile(dir), db); err != nil {
			return nil, fmt.Errorf("writing down where the tables are: %w", err)
		}
	}
	clients := e.engines.Config()
	made, err := provision.Make(ctx, t, clients, dir, db.Prefix, func(text string) {
		if e.options.Warnings != nil {
			_, _ = fmt.Fprintf(e.options.Warnings, "The DynamoDB at %s %s.\n", db.Endpoint, text)
		}
	})
	if err != nil {
		return nil, err
	}
	outputs := t.Outputs(made)
	outputs["ApiBaseUrl"] = e.BaseURL
	if err := e.writeStack(outputs); err != nil {
		return nil, fmt.Errorf("writing the stack's outputs: %w", err)
	}
	facts := filepath.Join(dir, "demo.json")
	renewed, err := demo.Renew(ctx, clients, outputs, facts)
	if err != nil {
		return nil, fmt.Errorf("demo account: %w", err)
	}
	if renewed && e.options.Warnings != nil {
		_, _ = fmt.Fprintln(e.options.Warnings, "The demo account's workspace is deleted. This is another demo account.")
	}
	e.demo = func(ctx context.Context) (demo.Facts, error) {
		return demo.Ensure(ctx, clients, outputs, facts, e.BaseURL)
	}
	e.Demo, err = e.demo(ctx)
	return made, err
}

// writeStack writes what other programs on this machine need, such as the operator's
// command: the stack's outputs and the engines.
func (e *Server) writeStack(outputs map[string]string) error {
	type endpoints struct {
		DynamoDB string `json:"dynamodb"`
		KMS      string `json:"kms"`
		S3       string `json:"s3"`
	}
	return state.Write(filepath.Join(e.options.State, "stack.json"), struct {
		Region          string            `json:"region"`
		Endpoints       endpoints         `json:"endpoints"`
		AccessKeyID     string            `json:"access_key_id"`
		SecretAccessKey string            `json:"secret_access_key"`
		Outputs         map[string]string `json:"outputs"`
	}{
		e.engines.Region, endpoints{e.engines.DynamoDB, e.engines.KMS, e.engines.S3},
		e.engines.AccessKeyID, e.engines.SecretAccessKey, outputs,
	})
}

// lost lists everything that a reset removes.
const lost = ", which removes every account, credential, sync job and file in it"

// advise adds advice for the user to the error of a start, unless the error is the advice.
func (e *Server) advise(ctx context.Context, err error) error {
	dir := e.options.State
	_, isConfig := errors.AsType[engines.ConfigError](err)
	damaged, isDamaged := errors.AsType[*state.Damage](err)
	switch {
	case ctx.Err() != nil, isConfig, errors.Is(err, errKept), errors.Is(err, state.ErrInUse):
		return err
	case state.IsFull(dir):
		return diskFull(dir, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the folder %s or something in it belongs to another user, or cannot be written: %w", dir, err)
	case isDamaged && damaged.Renewable:
		return fmt.Errorf("%w: remove this file; the next start makes a new demo account and keeps everything else", err)
	case isDamaged:
		return fmt.Errorf("the state in %s is damaged: %w. Put back a copy of it if you have one. Otherwise: make reset%s", dir, err, lost)
	case e.used:
		return fmt.Errorf("%w. The logs are in %[2]s/logs and %[2]s/engines/*/*.log. "+
			"Try again first. If the engine cannot use what is stored there: put back a copy, or make reset%[3]s", err, dir, lost)
	}
	return err
}

func diskFull(dir string, err error) error {
	return fmt.Errorf("the disk is full: make room for %s (%w)", dir, err)
}

// Reset removes the state folder, and its tables in another's DynamoDB, unless an
// local server uses it.
func Reset(ctx context.Context, dir string, warnings io.Writer) error {
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
	if err := dropTables(ctx, dir); err != nil && warnings != nil {
		_, _ = fmt.Fprintln(warnings, "local:", err)
	}
	return errors.Join(os.RemoveAll(dir), lock.Close())
}
