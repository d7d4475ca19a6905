// Command router is the authorizer: a small process beside a model router, which asks
// it for "this request's key". It identifies the caller by its Signalbox API key,
// plans the request by the flags of the stored credentials, and opens one key for each
// attempt. Its configuration is one file, router.yaml.
//
//	POST /plan/…  The caller's API key and the whole body. 200 with X-Signalbox-Plan, and
//	              X-Envoy-Max-Retries for as many attempts as the plan has steps.
//	POST /open/…  X-Signalbox-Plan, once for each attempt. 200 with the provider's key in
//	              the header that the provider takes, X-Signalbox-Credential,
//	              -Provider, -Host and -Attempt. Without a plan: the caller's API key and
//	              the body, for one attempt.
//	GET  /health  200 while the process serves.
//	GET  /metrics for Prometheus.
//
// A refusal is 400, 401, 403, 404, 413 or 503 with a reason in the API's error envelope.
// It ends the caller's request: only a provider's answer moves on to the next step
// (routing.MovesOn). A panic, a restart and any other failure of this process also end the
// request: there is no other key to fall back to.
//
// It listens on this machine only, because a client that reaches it with an API key gets
// provider keys. It trusts the router to send the caller's own API key, and to set
// user_id_header itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"signalbox.dev/shared/routing"
)

const (
	readTime     = 4 * time.Second // for headers and body: less than requestTime, so a slow caller gets a 400
	idleTime     = 5 * time.Minute
	shutdownTime = 10 * time.Second
	maxHeaders   = 64 << 10
)

func main() {
	file := flag.String("config", "router.yaml", "the configuration file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(ctx, *file, log); err != nil {
		fmt.Fprintln(os.Stderr, "router:", err)
		os.Exit(1) //nolint:gocritic // the signal handler may end with the process
	}
}

func run(ctx context.Context, file string, log *slog.Logger) error {
	opened, err := os.Open(file) //nolint:gosec // the operator's own choice
	if err != nil {
		return err
	}
	c, err := readConfig(opened)
	_ = opened.Close() // it was only read
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	aws, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("configuring the AWS clients: %w", err)
	}
	if aws.Region == "" {
		return errors.New("no AWS region: set AWS_REGION")
	}
	reader, err := routing.NewReader(dynamodb.NewFromConfig(aws), kms.NewFromConfig(aws), routing.Config{
		AccessTable: c.Stack.AccessTable, CredentialsTable: c.Stack.CredentialsTable,
		SealingKeyARNs: c.Stack.sealingKeys(), Keys: c.MaxKeys,
	})
	if err != nil {
		return err
	}
	defer reader.Close()
	network, address, _ := c.address() // readConfig has checked it

	if network == "unix" { // a killed process leaves its socket
		if left, err := os.Lstat(address); err == nil && left.Mode().Type() == os.ModeSocket {
			_ = os.Remove(address) // if it fails, Listen reports it
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if err != nil {
		return err
	}
	log.Info("listening", "address", listener.Addr().String())
	return serve(ctx, newServer(c, reader, log), listener)
}

// newServer returns the server for the listeners of serve.
func newServer(c config, reader *routing.Reader, log *slog.Logger) *http.Server {
	plans := newPlans(c.MaxPlans, c.PlanAge)
	return &http.Server{
		Handler:           &authorizer{config: c, reader: reader, plans: plans, metrics: newMetrics(reader.Kept, plans.count), log: log},
		ConnContext:       withConn,
		ReadHeaderTimeout: readTime, ReadTimeout: readTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// serve serves until the context ends, and then lets requests under way finish.
func serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(secretListener{listener}) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := server.Shutdown(ctx)
	if failed := <-ended; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}
