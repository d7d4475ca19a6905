package boot_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/shared/boot"
	"signalbox.dev/shared/calls"
)

// lambdaSets are the variables that Lambda sets for every function.
func lambdaSets(t *testing.T, endpoint string) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
		"AWS_ENDPOINT_URL": endpoint,
	} {
		t.Setenv(name, value)
	}
}

// network is an in-memory listener, for synctest.
type network struct {
	dialled     chan net.Conn
	closed      chan struct{}
	connections atomic.Int64
	open        atomic.Int64
	purged      atomic.Int64 // how many of the first connections are gone
	refuses     atomic.Bool  // whether new connections are refused
	silent      atomic.Bool  // whether a purged connection loses requests without a reset
}

// connection is the client's end of a connection. If the network purged it, a written
// request is lost and the read is reset.
type connection struct {
	net.Conn
	network *network
	number  int64
	closed  sync.Once
}

func (c *connection) gone() bool { return c.number <= c.network.purged.Load() }

func (c *connection) Write(b []byte) (int, error) {
	if c.gone() && c.network.silent.Load() {
		return len(b), nil
	}
	if c.gone() {
		return len(b), c.Conn.Close()
	}
	return c.Conn.Write(b)
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && c.gone() {
		err = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return n, err
}

func (c *connection) Close() error {
	c.closed.Do(func() { c.network.open.Add(-1) })
	return c.Conn.Close()
}

// response is how long a response takes: a client has then ended its own write.
const response = 10 * time.Millisecond

// serve serves http://aws.test in the synctest bubble.
func serve(t *testing.T, handler http.HandlerFunc) *network {
	t.Helper()
	n := &network{dialled: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client disconnects
		time.Sleep(response)
		handler(w, r)
	})}
	go func() { _ = server.Serve(n) }()
	t.Cleanup(func() { _ = server.Close() })
	lambdaSets(t, "http://aws.test")
	return n
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if n.refuses.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	number := n.connections.Add(1)
	here, there := net.Pipe()
	select {
	case n.dialled <- there:
		n.open.Add(1)
		return &connection{Conn: here, network: n, number: number}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.dialled:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *network) Close() error { close(n.closed); return nil }

// Addr implements net.Listener.
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

// assemble makes the cold start of a function on the network.
func (n *network) assemble(t *testing.T, build func(*boot.Environment)) {
	t.Helper()
	_, err := boot.Assemble(n.dial, nil, func(env *boot.Environment) lambda.Handler {
		build(env)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// database assembles a function that has only a DynamoDB client.
func (n *network) database(t *testing.T) (db *dynamodb.Client) {
	t.Helper()
	n.assemble(t, func(env *boot.Environment) { db = dynamodb.NewFromConfig(env.AWS()) })
	return db
}

// list returns a call that must succeed.
func list(t *testing.T, db *dynamodb.Client) func(context.Context) {
	return func(ctx context.Context) {
		if _, err := db.ListTables(ctx, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestAnEnvironmentThatCannotServeIsRefused(t *testing.T) {
	const sdk = "AWS_REGION, AWS_ACCESS_KEY_ID"
	for name, c := range map[string]struct {
		lambda map[string]string // these replace the variables of lambdaSets
		want   string
	}{
		"the function's own variables": {nil, "missing from the environment: ONE_TABLE, ANOTHER_TABLE"},
		"no credentials":               {map[string]string{"AWS_ACCESS_KEY_ID": ""}, sdk},
		"no region":                    {map[string]string{"AWS_REGION": ""}, sdk},
		"FIPS, perhaps":                {map[string]string{"AWS_USE_FIPS_ENDPOINT": "yes"}, `AWS_USE_FIPS_ENDPOINT must be true or false, not "yes"`},
		"dual-stack, perhaps":          {map[string]string{"AWS_USE_DUALSTACK_ENDPOINT": "1"}, `AWS_USE_DUALSTACK_ENDPOINT must be true or false, not "1"`},
	} {
		t.Run(name, func(t *testing.T) {
			lambdaSets(t, "http://127.0.0.1:1")
			for variable, value := range c.lambda {
				t.Setenv(variable, value)
			}
			_, err := boot.Assemble(nil, map[string]string{"PRESENT": "x"}, func(env *boot.Environment) lambda.Handler {
				if got := env.Get("PRESENT"); got != "x" {
					t.Errorf("PRESENT is %q", got)
				}
				env.Get("ONE_TABLE")
				env.Get("ANOTHER_TABLE")
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// The warm-up and the first call connect to the host that the environment names.
func TestEndpointsComeFromTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		variables map[string]string
		want      string
	}{
		"the region's":    {map[string]string{}, "dynamodb.us-east-1.amazonaws.com:443"},
		"FIPS":            {map[string]string{"AWS_USE_FIPS_ENDPOINT": "TRUE"}, "dynamodb-fips.us-east-1.amazonaws.com:443"},
		"dual-stack":      {map[string]string{"AWS_USE_DUALSTACK_ENDPOINT": "true"}, "dynamodb.us-east-1.api.aws:443"},
		"both":            {map[string]string{"AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true"}, "dynamodb-fips.us-east-1.api.aws:443"},
		"neither":         {map[string]string{"AWS_USE_FIPS_ENDPOINT": "false", "AWS_USE_DUALSTACK_ENDPOINT": "False"}, "dynamodb.us-east-1.amazonaws.com:443"},
		"one for all":     {map[string]string{"AWS_ENDPOINT_URL": "http://aws.test"}, "aws.test:80"},
		"of the service":  {map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": "http://tables.test", "AWS_ENDPOINT_URL": "http://aws.test"}, "tables.test:80"},
		"of another":      {map[string]string{"AWS_ENDPOINT_URL_DYNAMODB_STREAMS": "http://tables.test"}, "dynamodb.us-east-1.amazonaws.com:443"},
		"set to no value": {map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": "", "AWS_ENDPOINT_URL": "http://aws.test"}, "aws.test:80"},
	} {
		t.Run(name, func(t *testing.T) {
			lambdaSets(t, "")
			for variable, value := range c.variables {
				t.Setenv(variable, value)
			}
			var dialled []string
			dial := func(_ context.Context, _, address string) (net.Conn, error) {
				dialled = append(dialled, address)
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			var db *dynamodb.Client
			if _, err := boot.Assemble(dial, nil, func(env *boot.Environment) lambda.Handler {
				db = boot.DynamoDB(env)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			_, _ = db.ListTables(t.Context(), nil, once)
			if want := []string{c.want, c.want}; !slices.Equal(dialled, want) {
				t.Errorf("dialled %q, want %q", dialled, want)
			}
		})
	}
}

// TestMain runs the test binary as a function if SIGNALBOX_TEST_START is set.
func TestMain(m *testing.M) {
	if table := os.Getenv("SIGNALBOX_TEST_START"); table != "" {
		boot.Start(func(env *boot.Environment) lambda.Handler {
			env.Get(table)
			return lambda.NewHandler(func() (string, error) { return "done", nil })
		})
	}
	m.Run()
}

func TestAColdStartThatFailsEndsTheProcess(t *testing.T) {
	for want, variables := range map[string][]string{
		"AWS_REGION": {"SIGNALBOX_TEST_START=PATH", "PATH=/"},
		"A_TABLE":    {"SIGNALBOX_TEST_START=A_TABLE", "AWS_REGION=us-east-1"},
	} {
		start := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // the test itself
		start.Env = append(variables, "AWS_LAMBDA_RUNTIME_API=127.0.0.1:1", "AWS_LAMBDA_LOG_FORMAT=JSON", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret")
		out, err := start.CombinedOutput()
		ended, _ := errors.AsType[*exec.ExitError](err)
		if ended == nil || ended.ExitCode() != 1 || !strings.Contains(string(out), `"cold start"`) || !strings.Contains(string(out), want) {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// The warm-up opens the connection that the first call uses, with an unsigned request.
func TestTheWarmUpOpensTheFirstCallsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var signed, unsigned atomic.Int64
		n := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Header.Get("Authorization"), "Credential=id/") && r.Header.Get("X-Amz-Security-Token") == "token" {
				signed.Add(1)
			} else if r.Method == http.MethodGet && r.URL.Path == "/" {
				unsigned.Add(1)
			}
			answerJSON(w, "{}")
		})
		var db *dynamodb.Client
		n.assemble(t, func(env *boot.Environment) {
			db = boot.DynamoDB(env)
			elsewhere := dynamodb.NewFromConfig(env.AWS(), func(o *dynamodb.Options) { o.BaseEndpoint = new("http://no host") })
			env.WarmUp(func(ctx context.Context) { _, _ = elsewhere.ListTables(ctx, nil) })
		})
		if unsigned.Load() != 1 || signed.Load() != 0 {
			t.Errorf("the warm-up sent %d unsigned and %d signed requests, want 1 and 0", unsigned.Load(), signed.Load())
		}
		ctx, count := calls.Start(t.Context())
		if _, err := db.ListTables(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if n.connections.Load() != 1 || signed.Load() != 1 {
			t.Errorf("the first call opened a connection of its own, or %d calls had Lambda's credentials", signed.Load())
		}
		if count.Made() != 1 {
			t.Errorf("counted %d calls", count.Made())
		}
	})
}

// A service that does not respond delays a cold start by one second.
func TestTheWarmUpIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		began := time.Now()
		n.assemble(t, func(env *boot.Environment) { boot.DynamoDB(env) })
		if took := time.Since(began); took != time.Second {
			t.Errorf("the cold start took %v", took)
		}
	})
}

// If the freeze silenced the connections, a request that calls two services waits once.
func TestAFrozenFunctionWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := serve(t, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, "{}") })
		var one, another *dynamodb.Client
		n.assemble(t, func(env *boot.Environment) {
			one = dynamodb.NewFromConfig(env.AWS())
			another = dynamodb.NewFromConfig(env.AWS(), func(o *dynamodb.Options) { o.BaseEndpoint = new("http://another.test") })
		})
		list(t, one)(t.Context())
		list(t, another)(t.Context())
		time.Sleep(5 * time.Second)
		n.silent.Store(true)
		n.purged.Store(n.connections.Load())
		began := time.Now()
		list(t, one)(t.Context())
		list(t, another)(t.Context())
		if took := time.Since(began); took > 2100*time.Millisecond {
			t.Errorf("two calls took %v", took)
		}
	})
}

// A connection that was idle for longer may have died silently: waiting for it costs 2 s.
func TestAnIdleConnectionLives15Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := serve(t, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, "{}") })
		db := n.database(t)
		for i, want := range []int64{1, 1, 2} {
			time.Sleep(time.Duration(14*i) * time.Second)
			if _, err := db.ListTables(t.Context(), nil); err != nil || n.connections.Load() != want {
				t.Errorf("call %d: %v, %d connections, want %d", i+1, err, n.connections.Load(), want)
			}
		}
	})
}

// Idle connections are closed only after a call that may have met a dead one.
func TestWhichCallsCloseIdleConnections(t *testing.T) {
	const busy = 3 // connections
	for name, c := range map[string]struct {
		before   func(*network)
		late     bool          // the call that fails gets no response
		parallel int           // calls that succeed beside it
		time     time.Duration // of the call that fails
		want     int64         // connections that stay open
	}{
		"it was broken off":             {func(n *network) { n.purged.Store(busy) }, false, 0, time.Minute, 0},
		"its response did not begin":    {nil, true, 0, time.Minute, 0},
		"its own time ended":            {nil, true, 0, time.Second, busy - 1},
		"no connection could be opened": {func(n *network) { n.refuses.Store(true) }, false, busy, time.Minute, busy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fails atomic.Bool
				n := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if fails.Load() && c.late {
						<-r.Context().Done()
						return
					}
					answerJSON(w, "{}")
				})
				db := n.database(t)
				call := list(t, db)
				calls.Together(t.Context(), call, call, call)
				synctest.Wait()
				if c.before != nil {
					c.before(n)
				}
				fails.Store(true)
				all := slices.Repeat([]func(context.Context){call}, c.parallel)
				calls.Together(t.Context(), append(all, func(ctx context.Context) {
					time.Sleep(time.Microsecond) // the others have their connections
					ctx, cancel := context.WithTimeout(ctx, c.time)
					defer cancel()
					if _, err := db.ListTables(ctx, nil, once); err == nil {
						t.Error("the call succeeded")
					}
				})...)
				synctest.Wait()
				if n.open.Load() != c.want || n.connections.Load() != busy {
					t.Errorf("%d connections are open of %d, want %d of %d", n.open.Load(), n.connections.Load(), c.want, busy)
				}
			})
		})
	}
}

// A request is signed for one host.
func TestARedirectIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.test/", http.StatusTemporaryRedirect)
		})
		get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://aws.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := n.database(t).Options().HTTPClient.Do(get)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusTemporaryRedirect {
			t.Errorf("status %d, %v", answer.StatusCode, err)
		}
	})
}

// once makes a call without retries.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// A response that does not begin, or that stops in the middle, ends its attempt.
func TestAnAttemptIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		begins bool
		most   time.Duration // of the attempt and a pause
	}{"late": {false, 2100 * time.Millisecond}, "stalled": {true, 3100 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int64
				n := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if asked.Add(1) > 1 {
						answerJSON(w, "{}")
						return
					}
					if c.begins {
						answerJSON(w, "{")
						_ = http.NewResponseController(w).Flush()
					}
					<-r.Context().Done()
				})
				began := time.Now()
				_, err := n.database(t).ListTables(t.Context(), nil)
				if took := time.Since(began); err != nil || asked.Load() != 2 || took > c.most {
					t.Errorf("asked %d times in %v, %v", asked.Load(), took, err)
				}
			})
		})
	}
}

func answerJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_, _ = w.Write([]byte(body))
}
