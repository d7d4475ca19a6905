// Package engines runs the services that Signalbox needs on one machine: DynamoDB
// (ExtendDB), S3 (versitygw) and a stand-in for KMS, or second opinions in their place, all
// on one address, with their state in one folder. Engines that are processes of their own
// end with this one, however it ends.
package engines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/local/kms"
	"signalbox.dev/infra/reach"
)

// The credentials that the engines accept: AWS's documented example, which is
// built into ExtendDB.
const (
	accessKeyID     = "AKIAIOSFODNN7EXAMPLE"                     //nolint:gosec // AWS's published example
	secretAccessKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" //nolint:gosec // AWS's published example
)

// ErrConfig means that nothing was started, because an engine is not installed.
var ErrConfig = errors.New("configuration")

// configError is an ErrConfig with its own text.
type configError struct{ error }

func (configError) Is(target error) bool { return target == ErrConfig }

// host is the address that the engines listen on.
const host = "127.0.0.1"

// Config configures engines.
type Config struct {
	// Dir is the folder of their state; it is made if need be.
	Dir string
	// Root is the repository's folder: they are installed and built there. Empty means the
	// nearest one above the working directory with a template.yaml.
	Root string
	// DynamoDB is the URL of a running one, which is neither started nor stopped. Empty
	// means one of our own.
	DynamoDB string
	// Log gets a line for each engine that ended and was started again. Nil means no
	// log.
	Log *slog.Logger
}

// Engines are running engines.
type Engines struct {
	reach.Engines
	kms   *http.Server
	front *front // before DynamoDB, where its engine needs one
	done  chan error
	// keepers wait for the ends of processes, until stopKeeping is called.
	keepers     sync.WaitGroup
	stopKeeping context.CancelFunc

	mu        sync.Mutex
	closed    bool
	processes [len(services)]*process // nil where the engine runs in this process
}

// Start returns when all engines answer. The context bounds the start only.
func Start(ctx context.Context, c Config) (*Engines, error) {
	programs, err := c.complete()
	if err == nil && c.DynamoDB != "" {
		err = answersElsewhere(ctx, c.DynamoDB)
	}
	if err != nil {
		return nil, configError{err}
	}
	e := &Engines{
		Engines: reach.Engines{Region: kms.Region, AccessKeyID: accessKeyID, SecretAccessKey: secretAccessKey},
		done:    make(chan error, len(services)+2),
	}
	life, stopKeeping := context.WithCancel(context.Background())
	e.stopKeeping = stopKeeping
	group, ctx := errgroup.WithContext(ctx)
	for i, p := range programs {
		group.Go(func() (err error) {
			switch {
			case i == dynamoDB && p == nil:
				return nil // it runs already
			case p == nil:
				return e.startKMS(filepath.Join(c.Dir, "kms"))
			}
			e.processes[i], err = p.start(ctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	for i, url := range []*string{dynamoDB: &e.DynamoDB, objects: &e.S3, keys: &e.KMS} {
		if p := e.processes[i]; p != nil {
			*url = p.url
			e.keepers.Go(func() { e.keep(life, i, c) })
		}
	}
	if c.DynamoDB != "" {
		e.DynamoDB = c.DynamoDB
		return e, nil
	}
	if programs[dynamoDB].name == ExtendDB {
		if e.front, err = newFront(e.DynamoDB, e.done); err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.DynamoDB = e.front.url
	}
	return e, nil
}

// complete fills in defaults and returns the programs to run: nil for an engine in this
// process.
func (c *Config) complete() (programs [len(services)]*program, err error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Root == "" {
		if c.Root, err = findRoot(); err != nil {
			return programs, err
		}
	}
	for i, s := range services {
		if i == dynamoDB && c.DynamoDB != "" {
			continue
		}
		if programs[i], err = s.program(*c); err != nil {
			return programs, err
		}
	}
	return programs, nil
}

// findRoot looks for the repository from the working directory upwards.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "template.yaml")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no template.yaml here or above: run this in the repository")
		}
		dir = parent
	}
}

// startKMS serves the stand-in from this process.
func (e *Engines) startKMS(dir string) error {
	service, err := kms.Open(dir)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return fmt.Errorf("listening for KMS: %w", err)
	}
	e.KMS = "http://" + listener.Addr().String()
	e.kms = &http.Server{Handler: service, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := e.kms.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			e.done <- fmt.Errorf("KMS ended: %w", err)
		}
	}()
	return nil
}

// Done sends an error if an ended engine cannot be started again.
func (e *Engines) Done() <-chan error { return e.done }

// Close stops every engine and waits for its end.
func (e *Engines) Close() error {
	var err error
	if e.kms != nil {
		err = e.kms.Close()
	}
	if e.front != nil {
		err = errors.Join(err, e.front.server.Close())
	}
	e.stopKeeping()
	e.mu.Lock()
	e.closed = true
	var all sync.WaitGroup
	for _, p := range e.processes {
		if p != nil {
			all.Go(p.stop)
		}
	}
	e.mu.Unlock()
	all.Wait()
	e.keepers.Wait()
	return err
}
