// Package edition is all of Signalbox on one machine: the engines with the template's
// resources, the unmodified functions under a Lambda runtime, and the gateway before them,
// on one loopback port. All its state is in one folder, which one edition at a time may
// use. Every child ends with it, even if it is killed.
package edition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"signalbox.dev/infra/local/demo"
	"signalbox.dev/infra/local/docs"
	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/local/gateway"
	"signalbox.dev/infra/local/provision"
	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/local/samlocal"
	"signalbox.dev/infra/local/state"
	"signalbox.dev/infra/local/template"
	"signalbox.dev/infra/reach"
)

// closeTime bounds how long Close waits for requests that are under way.
const closeTime = 5 * time.Second

// Options configure an edition.
type Options struct {
	// Root is the repository's folder: the template is there.
	Root string
	// State is the folder of everything that is kept. It is made if need be.
	State string
	// Port is the port on 127.0.0.1, and on ::1 if there is IPv6. Zero means any free
	// port.
	Port int
	// DynamoDB is the URL of a DynamoDB that runs already, for a new state folder. A used
	// folder keeps its own. Empty means the edition's own, if the platform has it.
	DynamoDB string
	// Parameters overrides the template's parameters.
	Parameters map[string]string
	// Functions is a folder with one folder for each function, named by its
	// logical id, that holds its bootstrap. Empty means .build/functions in Root.
	Functions string
	// Terminal, if there is one, gets a line for each request.
	Terminal io.Writer
	// Warnings, if there is one, gets a line for each thing that the user needs to know,
	// such as tables that another's DynamoDB has lost.
	Warnings io.Writer
	// Through, if there is one, gets the engines and returns the endpoints by which the
	// function reaches them. It also gets the names of everything in them.
	Through func(to reach.Engines, function string, made template.Resources) (reach.Engines, error)
}

// Edition is a running edition.
type Edition struct {
	// BaseURL precedes the paths of the contract.
	BaseURL string
	// Demo is the demo account, as it was at the start.
	Demo demo.Facts

	// demo returns the present demo account.
	demo      func(context.Context) (demo.Facts, error)
	listeners []net.Listener
	gateway   *gateway.Gateway
	server    *http.Server
	served    chan error
	lambda    *runtime.Lambda
	engines   *engines.Engines
	samLocal  *samlocal.Server
	journal   *journal
	lock      *os.File
	state     string
	// used is set if an earlier start has made the tables.
	used bool
}

// Start starts everything and serves once everything answers. The context
// bounds the start only.
func Start(ctx context.Context, o Options) (*Edition, error) {
	if o.Functions == "" {
		o.Functions = filepath.Join(o.Root, ".build", "functions")
	}
	loaded, err := template.Load(filepath.Join(o.Root, "template.yaml"), o.Parameters)
	if err != nil {
		return nil, err
	}
	e := &Edition{served: make(chan error, 2)}
	if err := e.start(ctx, o, loaded); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Edition) start(ctx context.Context, o Options, t *template.Template) error {
	api, err := t.API()
	if err != nil {
		return err
	}
	if err := e.lockState(ctx, o); err != nil {
		return err
	}
	if e.listeners, err = listen(o.Port); err != nil {
		return err
	}
	e.BaseURL = "http://" + e.listeners[0].Addr().String() + "/api/v1"
	if err := state.Describe(e.lock, e.BaseURL); err != nil {
		return e.advise(ctx, fmt.Errorf("locking the state folder: %w", err))
	}
	made, err := e.startEngines(ctx, o, t)
	if err != nil {
		return err
	}
	if err := e.runFunctions(o, t, made); err != nil {
		return err
	}
	e.serve(o, api)
	return e.serveSAMLocal(o, t, made)
}

// startEngines starts the engines and makes the template's tables, keys and bucket in them,
// and the demo account. If the state is at fault, the error says how to repair it.
func (e *Edition) startEngines(ctx context.Context, o Options, t *template.Template) (template.Resources, error) {
	made, err := e.fillEngines(ctx, o, t)
	return made, e.advise(ctx, err)
}

func (e *Edition) fillEngines(ctx context.Context, o Options, t *template.Template) (template.Resources, error) {
	db, err := chooseDynamoDB(o, engines.HasDynamoDB(o.Root))
	if err != nil {
		return nil, err
	}
	if e.engines, err = engines.Start(ctx, engines.Config{
		Dir: filepath.Join(o.State, "engines"), Root: o.Root, Log: e.journal.log, DynamoDB: db.Endpoint,
	}); err != nil {
		return nil, fmt.Errorf("starting the engines: %w", err)
	}
	if db != (elsewhere{}) {
		// Before any table is made: otherwise nobody could name a table after a crash.
		if err := state.Write(elsewhereFile(o.State), db); err != nil {
			return nil, fmt.Errorf("writing down where the tables are: %w", err)
		}
	}
	clients := e.engines.Config()
	made, err := provision.Make(ctx, t, clients, o.State, db.Prefix, func(text string) {
		if o.Warnings != nil {
			_, _ = fmt.Fprintf(o.Warnings, "The DynamoDB at %s %s.\n", db.Endpoint, text)
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
	e.demo = fillDemo(o, clients, outputs, e.BaseURL)
	e.Demo, err = e.demo(ctx)
	return made, err
}

// writeStack writes what other programs on this machine need, such as the operator's
// command: the stack's outputs and the engines.
func (e *Edition) writeStack(outputs map[string]string) error {
	type endpoints struct {
		DynamoDB string `json:"dynamodb"`
		KMS      string `json:"kms"`
		S3       string `json:"s3"`
	}
	return state.Write(filepath.Join(e.state, "stack.json"), struct {
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

// advise adds advice for the user to the error of a start.
func (e *Edition) advise(ctx context.Context, err error) error {
	_, conflict := errors.AsType[*conflictError](err)
	_, isConfig := errors.AsType[engines.ConfigError](err)
	switch {
	case err == nil || ctx.Err() != nil || conflict || isConfig:
		return err
	case state.IsFull(e.state):
		return fmt.Errorf("the disk is full: make room for %s (%w)", e.state, err)
	}
	damaged, isDamaged := errors.AsType[*state.Damage](err)
	switch {
	case isDamaged && damaged.Renewable:
		return fmt.Errorf("%w: remove this file; the next start makes a new demo account and keeps everything else", err)
	case isDamaged:
		return fmt.Errorf("the state in %s is damaged: %w. Put back a copy of it if you have one. Otherwise: make reset%s", e.state, err, lost)
	case e.used:
		return fmt.Errorf("%w. The logs are in %[2]s/logs and %[2]s/engines/*/*.log. "+
			"Try again first. If the engine cannot use what is stored there: put back a copy, or make reset%[3]s", err, e.state, lost)
	}
	return err
}

// lockState locks the state folder and opens the logs.
func (e *Edition) lockState(ctx context.Context, o Options) error {
	e.state = o.State
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return e.advise(ctx, fmt.Errorf("making the state folder: %w", err))
	}
	_, err := os.Stat(filepath.Join(o.State, provision.ResourcesFile))
	e.used = err == nil
	if e.lock, err = state.Lock(o.State); errors.Is(err, state.ErrInUse) {
		return err
	}
	if err == nil {
		e.journal, err = newJournal(filepath.Join(o.State, "logs"), o.Terminal)
	}
	return e.advise(ctx, err)
}

// fillDemo returns the function that makes the demo account, or reads it and lists its
// files.
func fillDemo(o Options, c aws.Config, outputs map[string]string, baseURL string) func(context.Context) (demo.Facts, error) {
	return func(ctx context.Context) (demo.Facts, error) {
		return demo.Ensure(ctx, c, outputs, filepath.Join(o.State, "demo.json"), baseURL)
	}
}

// serve serves the API, and the reference page beside it.
func (e *Edition) serve(o Options, api template.API) {
	pages := docs.Pages(docs.Config{Root: o.Root, Demo: e.demo, Log: e.journal.log})
	e.gateway = gateway.New(gateway.Config{API: api, Functions: e.lambda, Account: template.Account, Pages: pages, Log: e.journal.log})
	e.server = e.gateway.Server()
	for _, l := range e.listeners {
		go func() { e.served <- e.server.Serve(l) }()
	}
}

// Wait waits until the context is done, which is no error, or until an engine or
// the gateway has stopped.
func (e *Edition) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-e.served:
		return fmt.Errorf("the gateway stopped: %w", err)
	case err := <-e.engines.Done():
		err = fmt.Errorf("an engine stopped: %w", err)
		if state.IsFull(e.state) {
			return fmt.Errorf("the disk is full: make room for %s (%w)", e.state, err)
		}
		return err
	}
}

// Close lets requests that are under way finish, ends every child, and frees the
// state folder. It also cleans up after a start that failed half way.
func (e *Edition) Close() error {
	var problems []error
	if e.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := e.server.Shutdown(ctx); err != nil {
			problems = append(problems, e.server.Close())
		}
	} else {
		for _, l := range e.listeners {
			problems = append(problems, l.Close())
		}
	}
	if e.samLocal != nil {
		problems = append(problems, e.samLocal.Close())
	}
	if e.lambda != nil {
		e.lambda.Close()
	}
	if e.engines != nil {
		problems = append(problems, e.engines.Close())
	}
	if e.journal != nil {
		problems = append(problems, e.journal.close())
	}
	if e.lock != nil {
		problems = append(problems, e.lock.Close())
	}
	return errors.Join(problems...)
}
