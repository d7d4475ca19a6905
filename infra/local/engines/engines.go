// Package engines runs the services that Signalbox needs on one machine: DynamoDB
// (ExtendDB), S3 (versitygw) and a stand-in for KMS, or engines of infra/test/second-opinion
// instead. All listen on one address and keep their state in one folder. An engine that is a
// separate process ends with this one, even if this one is killed.
package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/local/kms"
)

// The credentials that the engines accept: AWS's documented example, which is
// built into ExtendDB.
const (
	accessKeyID     = "AKIAIOSFODNN7EXAMPLE"                     //nolint:gosec // AWS's published example
	secretAccessKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" //nolint:gosec // AWS's published example
)

// ConfigError means that nothing was started because an engine is not there.
type ConfigError struct{ error }

// host is the address that the engines listen on.
const host = "127.0.0.1"

// Config configures engines.
type Config struct {
	// Dir is the folder of their state. Start makes it if it does not exist.
	Dir string
	// Root is the repository's folder: the engines are installed and built there. Empty means
	// the working directory.
	Root string
	// DynamoDB is the URL of a running DynamoDB, which is neither started nor stopped. If it
	// is empty, this package starts one. Calls reach it through the proxy of front.go.
	DynamoDB string
	// Log gets a line for each engine that ended and was started again. Nil means no
	// log.
	Log *slog.Logger
}

// Engines are running engines.
type Engines struct {
	awsclients.Engines
	log  *slog.Logger
	done chan error
	// life ends with Close. Every process then ends too.
	life context.Context
	end  context.CancelFunc
	// running waits until all processes have ended.
	running sync.WaitGroup
	servers []*http.Server // in this process
}

// Start returns when all engines answer. The context bounds the start only.
func Start(ctx context.Context, c Config) (*Engines, error) {
	programs, err := c.programs()
	if err == nil && c.DynamoDB != "" {
		err = answersElsewhere(ctx, c.DynamoDB)
	}
	if err != nil {
		return nil, ConfigError{err}
	}
	e := &Engines{
		Engines: awsclients.Engines{Region: kms.Region, AccessKeyID: accessKeyID, SecretAccessKey: secretAccessKey, DynamoDB: c.DynamoDB},
		log:     cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		done:    make(chan error, len(services)+2),
	}
	e.life, e.end = context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	for i, url := range []*string{dynamoDB: &e.DynamoDB, objects: &e.S3, keys: &e.KMS} {
		if programs[i] != nil {
			group.Go(func() (err error) {
				*url, err = e.start(ctx, *programs[i])
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if programs[keys] == nil {
		service, err := kms.Open(filepath.Join(c.Dir, "kms"))
		if err == nil {
			e.KMS, err = e.serve("KMS", service)
		}
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	// A DynamoDB that runs already may be ExtendDB.
	if db := programs[dynamoDB]; db == nil || db.name == ExtendDB {
		if e.DynamoDB, err = e.serve("the proxy before DynamoDB", front(e.DynamoDB)); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

// serve serves from this process until Close, and returns the URL.
func (e *Engines) serve(name string, handler http.Handler) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("listening for %s: %w", name, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	e.servers = append(e.servers, server)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			e.done <- fmt.Errorf("%s ended: %w", name, err)
		}
	}()
	return "http://" + listener.Addr().String(), nil
}

// Done sends an error if an ended engine cannot be started again.
func (e *Engines) Done() <-chan error { return e.done }

// Close asks every engine to end, kills those that do not, and waits until all have ended.
func (e *Engines) Close() error {
	var err error
	for _, server := range e.servers {
		err = errors.Join(err, server.Close())
	}
	e.end()
	e.running.Wait()
	return err
}
