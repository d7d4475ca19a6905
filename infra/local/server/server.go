// Package server is all of Signalbox on one machine: the engines with the template's
// resources, the unmodified functions under a Lambda runtime, and the gateway before them,
// on one loopback port. All its state is in one folder, which one server at a time may
// use. Every child ends with it, even if it is killed.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"signalbox.dev/infra/local/demo"
	"signalbox.dev/infra/local/docs"
	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/local/gateway"
	"signalbox.dev/infra/local/provision"
	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/local/state"
	"signalbox.dev/infra/local/template"
)

// Options configure a local server.
type Options struct {
	// Root is the repository's folder: the template is there.
	Root string
	// State is the folder for all stored data. It is created if absent.
	State string
	// Port is the port on 127.0.0.1, and on ::1 if there is IPv6. Zero means any free
	// port.
	Port int
	// Parameters overrides the template's parameters.
	Parameters map[string]string
	// Terminal, if there is one, gets a line for each request.
	Terminal io.Writer
}

// Server is a running local server.
type Server struct {
	// BaseURL precedes the paths of the contract.
	BaseURL string
	// Demo is the demo account, as it was at the start.
	Demo demo.Facts

	options Options
	account *demo.Account
	gateway *gateway.Gateway
	served  chan error
	lambda  *runtime.Lambda
	engines *engines.Engines
	journal *journal
	// ends has a function for each part that was started. Close calls the last one first.
	ends []func() error
	// used is set if an earlier start has made the tables.
	used bool
}

// Start starts everything and serves once everything answers. The context
// bounds the start only.
func Start(ctx context.Context, o Options) (*Server, error) {
	o.Terminal = cmp.Or(o.Terminal, io.Discard)
	loaded, err := template.Load(filepath.Join(o.Root, "template.yaml"), o.Parameters)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, served: make(chan error, 2)}
	if err := s.start(ctx, loaded); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, t *template.Template) error {
	api, err := t.API()
	if err != nil {
		return err
	}
	lock, err := s.openState()
	if err != nil {
		return s.advise(ctx, err)
	}
	listeners, err := listen(s.options.Port)
	if err != nil {
		return err
	}
	for _, l := range listeners {
		s.atEnd(func() error { _ = l.Close(); return nil }) // the server may have closed it
	}
	s.BaseURL = "http://" + listeners[0].Addr().String() + "/api/v1"
	made, err := s.fillEngines(ctx, lock, t)
	if err != nil {
		return s.advise(ctx, err)
	}
	functions, err := t.Functions(made)
	if err != nil {
		return err
	}
	if err := s.runFunctions(functions); err != nil {
		return err
	}
	s.serve(listeners, api)
	return s.serveSAMLocal(functions)
}

func (s *Server) atEnd(end func() error) { s.ends = append(s.ends, end) }

// openState locks the state folder and opens the logs.
func (s *Server) openState() (lock *os.File, err error) {
	dir := s.options.State
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	_, unused := os.Stat(filepath.Join(dir, provision.ResourcesFile))
	s.used = unused == nil
	if lock, err = state.Lock(dir); err != nil {
		return nil, err
	}
	s.atEnd(lock.Close)
	s.journal, err = newJournal(filepath.Join(dir, "logs"), s.options.Terminal)
	return lock, err
}

// serve serves the API, and the reference page beside it.
func (s *Server) serve(listeners []net.Listener, api template.API) {
	pages := docs.Pages(docs.Config{Root: s.options.Root, Demo: s.account.Ensure, Log: s.journal.log})
	s.gateway = gateway.New(gateway.Config{API: api, Functions: s.lambda, Pages: pages, Log: s.journal.log})
	server := s.gateway.Server()
	for _, l := range listeners {
		go func() { s.served <- server.Serve(l) }()
	}
	s.atEnd(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if server.Shutdown(ctx) == nil {
			return nil
		}
		return server.Close()
	})
}

// Wait waits until the context is done, which is no error, or until an engine or
// the gateway has stopped.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.served:
		return fmt.Errorf("the gateway stopped: %w", err)
	case err := <-s.engines.Done():
		err = fmt.Errorf("an engine stopped: %w", err)
		if state.IsFull(s.options.State) {
			return diskFull(s.options.State, err)
		}
		return err
	}
}

// Close gives requests that are under way five seconds to finish, ends every child, and
// frees the state folder. It also cleans up after a start that failed half way.
func (s *Server) Close() error {
	var problems []error
	for _, end := range slices.Backward(s.ends) {
		problems = append(problems, end())
	}
	return errors.Join(problems...)
}
