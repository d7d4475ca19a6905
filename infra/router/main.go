// Command router is the authorizer: a small process beside a model router, which asks
// it for "this request's key". It identifies the caller by its Signalbox API key,
// plans the request by the flags of the stored credentials, and opens one key for each
// attempt. Its configuration is one file, router.yaml.
//
//	POST /who/…   The caller's API key. 200 with X-Signalbox-Account.
//	POST /plan/…  The caller's API key and the whole body. 200 with X-Signalbox-Plan, and
//	              X-Envoy-Max-Retries for as many attempts as the plan has steps.
//	GET  /plan/v1/models
//	              The caller's API key. 418 with the list of models: no other response has
//	              this status, and envoy.yaml maps it to 200 for the client.
//	POST /open/…  X-Signalbox-Plan, and X-Envoy-Attempt-Count from 1, once for each attempt.
//	              200 with the provider's key in the header that the provider takes,
//	              X-Signalbox-Provider, -Credential and -Served-By. X-Signalbox-Path, if
//	              present, is the provider's path of the call. Without a plan: the
//	              caller's API key and the body, for one attempt. A key whose document
//	              names a host has X-Signalbox-Host: the router must send it to that host
//	              alone, and declares that with X-Signalbox-Documents: host.
//	GET  /health  200 while the process serves.
//	GET  /ready   200 once both tables were read; `router ready` asks it.
//	GET  /metrics for Prometheus.
//
// A refusal is a 4xx or 503 with a reason in the API's error envelope. A retry can help only after
// a 503. Any refusal ends the caller's request: only a provider's response moves on to the next
// step (routing.MovesOn). Responses name the account, the workspace, the API key's hash and the
// reasons of skipped credentials for the router's log; the authorizer's own has the router's
// X-Request-Id.
//
// It remembers no plan: the plan's name contains it, signed with a key that all authorizers
// share. So a router may ask another one, or the same one after a restart.
//
// It listens on this machine only, because a client that reaches it with an API key gets
// provider keys. It trusts the router to send the caller's own API key, to count the
// attempts, and to set user_id_header itself.
//
// `router names-key` prints a line for the file of name keys, `router -version` the version.
// `router check router.yaml envoy.yaml` lists the settings that do not fit each other.
// A change of the configuration needs a restart, which fails no request.
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
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	// Mozilla's root certificates, for an image that has no others.
	_ "golang.org/x/crypto/x509roots/fallback"
)

// version is set by the linker: see infra/release/programs.
var version = "unknown"

const (
	readTime     = 4 * time.Second // for headers and body: less than requestTime, so there is a response after a slow body
	idleTime     = 5 * time.Minute
	shutdownTime = 10 * time.Second
	maxHeaders   = 64 << 10

	commands = "ready, names-key and check ROUTER.YAML ENVOY.YAML"
)

func main() {
	file := flag.String("config", "router.yaml", "the configuration file")
	shown := flag.Bool("version", false, "show the version")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "Usage: router [FLAG …] [COMMAND]. Without a command it serves. The commands are "+commands+".\nFlags:")
		flag.PrintDefaults()
	}
	flag.Parse()
	debug.SetGCPercent(400)                                       // a tenth of the CPU; 100 bodies of 4 MiB take 154 MB, and at 100 it was 70
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // a core dump would hold keys; less is always allowed
	if *shown {
		fmt.Println("router", version)
		return
	}
	signal.Ignore(syscall.SIGPIPE) // without a reader of its log, the authorizer serves on
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch args := flag.Args(); {
	case len(args) == 0:
		err = run(ctx, *file, slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	case args[0] == "ready" && len(args) == 1:
		err = askReady(ctx, *file)
	case args[0] == "names-key" && len(args) == 1:
		fmt.Println(newNameKey())
	case args[0] == "check" && len(args) == 3:
		err = checkFiles(args[1], args[2])
	default:
		err = errors.New("no such command: there are " + commands)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "router:", err)
		os.Exit(1) // the signal handler may end with the process
	}
}

func run(ctx context.Context, file string, log *slog.Logger) error {
	c, err := readConfig(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	clients, err := configureAWS(ctx, c)
	if err != nil {
		return err
	}
	a, err := newAuthorizer(c, clients, log)
	if err != nil {
		return err
	}
	defer a.reader.Close()
	listener, err := listen(ctx, c)
	if err != nil {
		return err
	}
	log.Info("listening", "address", c.Listen)
	go a.awaitStorage(ctx)
	return serve(ctx, newServer(a, log), listener, c.MaxConnections)
}

// configureAWS keeps as many idle connections as there may be callers. The SDK keeps ten: with
// more callers, most requests would make a new one.
func configureAWS(ctx context.Context, c config) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, c.MaxConnections
	})
	configured, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithHTTPClient(client))
	if err != nil {
		return aws.Config{}, fmt.Errorf("configuring the AWS clients: %w", err)
	}
	if configured.Region == "" {
		return aws.Config{}, errors.New("no AWS region: set AWS_REGION")
	}
	return configured, nil
}

// listen listens on the configured address. A socket is made in a new folder, with the mode
// that the umask gives it. It then replaces another authorizer's socket, which may serve on:
// there is always one to connect to.
func listen(ctx context.Context, c config) (net.Listener, error) {
	at, _ := c.address() // readConfig has checked it
	if at.network == "tcp" {
		return new(net.ListenConfig).Listen(ctx, at.network, at.name)
	}
	if info, err := os.Lstat(at.name); err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%s exists and is no socket", at.name)
	}
	folder, err := os.MkdirTemp(filepath.Dir(at.name), ".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	made := filepath.Join(folder, "s")
	listener, err := net.ListenUnix(at.network, &net.UnixAddr{Name: made, Net: at.network})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := os.Rename(made, at.name); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// newServer returns the server for the listeners of serve.
func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
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
