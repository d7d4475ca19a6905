// Package engines runs the services that Signalbox needs on one machine: DynamoDB
// (ExtendDB, or Dynoxide), S3 (versitygw) and a stand-in for KMS. All
// listen on one address and keep their state in one folder. An engine that is a separate
// process ends with this one, even if this one is killed.
package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// host is the address that the engines listen on.
const host = "127.0.0.1"

// Config configures engines.
type Config struct {
	// Dir is the folder of their state. Start makes it if it does not exist.
	Dir string
	// Root is the repository's folder: the engines are installed and built there. Empty means
	// the working directory.
	Root string
}

// Engines are running engines.
type Engines struct {
	awsclients.Engines
	done chan error
	// life ends with Close. Every process and every server then ends too.
	life context.Context
	end  context.CancelFunc
	// running waits until all of them have ended.
	running sync.WaitGroup
}

// Start returns when all engines answer. The context bounds the start only. The error is a
// ConfigError if an engine is not there.
func Start(ctx context.Context, c Config) (*Engines, error) {
	var noDir error
	c.Dir, noDir = filepath.Abs(c.Dir)
	db, noDB := c.dynamoDB()
	objects, noObjects := c.s3()
	keys, noKeys := kms.Open(filepath.Join(c.Dir, "kms"))
	if err := cmp.Or(noDir, noDB, noObjects, noKeys); err != nil {
		return nil, err
	}
	e := newEngines()
	group, starting := errgroup.WithContext(ctx)
	group.Go(func() (err error) { e.DynamoDB, err = e.start(starting, db); return err })
	group.Go(func() (err error) { e.S3, err = e.start(starting, objects); return err })
	group.Go(func() (err error) { e.KMS, err = e.serve("KMS", keys); return err })
	if err := group.Wait(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func newEngines() *Engines {
	e := &Engines{
		Engines: awsclients.Engines{Region: kms.Region, AccessKeyID: accessKeyID, SecretAccessKey: secretAccessKey},
		done:    make(chan error, 5), // three engines, and the two that this process serves
	}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// serve serves from this process until Close, and returns the URL.
func (e *Engines) serve(name string, handler http.Handler) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("listening for %s: %w", name, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(e.life, func() { _ = server.Close() })
	e.running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			e.done <- fmt.Errorf("%s ended: %w", name, err)
		}
	})
	return "http://" + listener.Addr().String(), nil
}

// Done sends an error if an engine has ended.
func (e *Engines) Done() <-chan error { return e.done }

// Close asks every engine to end, kills those that do not, and waits until all have ended.
func (e *Engines) Close() {
	e.end()
	e.running.Wait()
}
