// Package contract is the black-box test suite of the shipped service. It
// sends requests over HTTP, as any client does, and checks every response
// against infra/openapi.yaml. Accounts, keys, jobs and files are made with the
// packages that the operator's command uses.
//
// By default it builds the functions and starts the local server. With
// SIGNALBOX_BASE_URL in the environment it tests the server there. If
// SIGNALBOX_FOREIGN_GATEWAY is set, that is an engine whose gateway has other headers.
package contract_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	localserver "signalbox.dev/infra/local/server"
	"signalbox.dev/infra/test/contract/openapi"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/client"
)

const (
	root = "../../.."

	// Every secret of the suite contains the marker: see checkEnvelope, and stop.
	providerKey    = "sk-" + kit.Marker + "-a-provider-key-AbCd"
	idempotencyKey = kit.Marker + "-idempotency-key"

	// unknownJob is a UUID of nothing.
	unknownJob = "7c9e6679-7425-40de-944b-e07fc1f90ae7"

	// startTimeout bounds the start of a local server with an empty state folder.
	startTimeout = 3 * time.Minute
)

// suite is shared by all tests. It does not change after TestMain.
type suite struct {
	server
	spec       *openapi.Spec
	requestIDs *sync.Map // those seen so far: each must be new
	// state is the state folder of the suite's own server, empty if the suite tests
	// another server.
	state string
}

// server is a running service and the stack behind it.
type server struct {
	client *client.Client
	*kit.Stack
	burst int // of deletions by one API key
}

func newServer(ctx context.Context, base, stack string) (server, error) {
	c := client.New(base, 256)
	c.Check = checkEnvelope
	opened, err := kit.OpenStack(ctx, stack)
	if err != nil {
		return server{}, err
	}
	creates, err := strconv.Atoi(cmp.Or(opened.Parameters["CreatesPerSecond"], "50"))
	if err != nil {
		return server{}, err
	}
	c.HTTP.Transport = paced{c.HTTP.Transport, rate.NewLimiter(rate.Limit(creates)/2, 1)}
	// A stack without parameters, such as that of `make run`, has the template's defaults.
	burst, err := strconv.Atoi(cmp.Or(opened.Parameters["DeleteBurst"], "20"))
	return server{c, opened, burst}, err
}

// paced sends creates at half the gateway's rate, which is low.
type paced struct {
	http.RoundTripper
	creates *rate.Limiter
}

func (p paced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		if err := p.creates.Wait(r.Context()); err != nil {
			return nil, err
		}
	}
	return p.RoundTripper.RoundTrip(r)
}

var the suite

// foreignGateway is ministack's gateway. It does not rename WWW-Authenticate, as a REST API
// does, and adds S3's header to every response.
type foreignGateway struct{ http.RoundTripper }

func (g foreignGateway) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := g.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Header.Del("X-Amz-Request-Id")
	if asked := answer.Header.Get("Www-Authenticate"); asked != "" {
		answer.Header.Set("X-Amzn-Remapped-Www-Authenticate", asked)
		answer.Header.Del("Www-Authenticate")
	}
	return answer, nil
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		code = 1
	}
	os.Exit(code)
}

// run tests the server at SIGNALBOX_BASE_URL with the stack in the file SIGNALBOX_STACK, or
// its own server.
func run(m *testing.M) (code int, err error) {
	the = suite{requestIDs: &sync.Map{}}
	if the.spec, err = openapi.Load("../../openapi.yaml"); err != nil {
		return 0, err
	}
	if err := everyOperation(); err != nil {
		return 0, err
	}
	if base := os.Getenv("SIGNALBOX_BASE_URL"); base != "" {
		if the.server, err = newServer(context.Background(), base, os.Getenv("SIGNALBOX_STACK")); err != nil {
			return 0, err
		}
		if os.Getenv("SIGNALBOX_FOREIGN_GATEWAY") != "" {
			the.client.HTTP.Transport = foreignGateway{the.client.HTTP.Transport}
		}
		return m.Run(), nil
	}
	// A binary older than its source would be tested in vain.
	if out, err := exec.Command("make", "-C", root, "functions").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the functions: %w\n%s", err, out)
	}
	if the.state, err = os.MkdirTemp("", "signalbox-contract-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(the.state)) }()
	s, stop, err := start(the.state, map[string]string{"CreatesPerSecond": "1000"}) // or the suite would take long
	if err != nil {
		return 0, err
	}
	the.server = s
	return m.Run(), stop()
}

// start starts a local server that keeps its state in the folder, with the parameters. stop
// ends it and searches all that it left for secrets.
func start(state string, parameters map[string]string) (s server, stop func() error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	e, err := localserver.Start(ctx, localserver.Options{Root: root, State: state, Parameters: parameters})
	if err != nil {
		return server{}, nil, fmt.Errorf("starting the local server: %w", err)
	}
	stop = func() error {
		if err := e.Close(); err != nil {
			return fmt.Errorf("stopping the local server: %w", err)
		}
		leaks, err := kit.Leaks(state)
		for _, leak := range leaks {
			err = errors.Join(err, errors.New("leak: "+leak))
		}
		return err
	}
	s, err = newServer(ctx, e.BaseURL, filepath.Join(state, "stack.json"))
	return s, stop, err
}
