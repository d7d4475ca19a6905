// Command router is the authorizer: a small process beside a model router, which asks
// it for "this request's key". It identifies the caller by its Signalbox API key,
// plans the request by the flags of the stored credentials, and opens one key for each
// attempt. Its configuration is one file, router.yaml.
//
//	POST /who/…   The caller's API key. 200 with X-Signalbox-Account.
//	POST /plan/…  The caller's API key and the whole body. 200 with X-Signalbox-Plan, and
//	              X-Envoy-Max-Retries for as many attempts as the plan has steps.
//	POST /open/…  X-Signalbox-Plan, and X-Envoy-Attempt-Count from 1, once for each attempt.
//	              200 with the provider's key in the header that the provider takes,
//	              X-Signalbox-Provider, -Host, -Credential and -Served-By. Without a plan:
//	              the caller's API key and the body, for one attempt.
//	GET  /health  200 while the process serves.
//	GET  /metrics for Prometheus.
//
// A refusal is a 4xx or 503 with a reason in the API's error envelope. A retry can help
// only after a 503. Any refusal ends the caller's request: only a provider's answer moves on
// to the next step (routing.MovesOn). Responses name the account, the workspace and the
// API key's hash for the router's log.
//
// It remembers no plan: the plan's name contains it, signed with a key that all authorizers
// share. So a router may ask another one, or the same one after a restart.
//
// It listens on this machine only, because a client that reaches it with an API key gets
// provider keys. It trusts the router to send the caller's own API key, to count the
// attempts, and to set user_id_header itself.
//
// `router names-key` prints a line for the file of name keys, `router -version` the version.
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
	shown := flag.Bool("version", false, "show the version")
	flag.Parse()
	if *shown {
		fmt.Println("router", version) //nolint:forbidigo // the command's output
		return
	}
	if flag.Arg(0) == "names-key" {
		fmt.Println(newNameKey())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(ctx, *file, log); err != nil {
		fmt.Fprintln(os.Stderr, "router:", err)
		os.Exit(1) //nolint:gocritic // the signal handler may end with the process
	}
}

func run(ctx context.Context, file string, log *slog.Logger) error {
	c, err := readConfig(file)
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
	return serve(ctx, newServer(c, reader, log), listener, c.MaxConnections)
}

// newServer returns the server for the listeners of serve.
func newServer(c config, reader *routing.Reader, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           &authorizer{config: c, reader: reader, metrics: newMetrics(reader.Kept), log: log},
		ConnContext:       withConn,
		ReadHeaderTimeout: readTime, ReadTimeout: readTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// serve serves until the context ends, and then lets requests under way finish.
func serve(ctx context.Context, server *http.Server, listener net.Listener, connections int) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(secretListener{listener, make(chan struct{}, connections)}) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		_ = server.Close() // also ends an Accept that waits for a connection's end
	}
	if failed := <-ended; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}
