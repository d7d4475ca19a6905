package boot_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyendpoints "github.com/aws/smithy-go/endpoints"

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

func TestEverythingMissingIsToldAtOnce(t *testing.T) {
	lambdaSets(t, "http://127.0.0.1:1")
	_, err := boot.Assemble(map[string]string{"PRESENT": "x"}, func(env *boot.Environment) lambda.Handler {
		if got := env.Get("PRESENT"); got != "x" {
			t.Errorf("PRESENT is %q", got)
		}
		env.Get("ONE_TABLE")
		env.Get("ANOTHER_TABLE")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "ONE_TABLE, ANOTHER_TABLE") {
		t.Errorf("got %v", err)
	}
}

func TestNoRegionOrCredentialsEndTheColdStart(t *testing.T) {
	for name, lacking := range map[string][]string{
		"no credentials": {"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY"},
		"no region":      {"AWS_REGION", "AWS_DEFAULT_REGION"},
	} {
		t.Run(name, func(t *testing.T) {
			lambdaSets(t, "")
			for _, variable := range lacking {
				t.Setenv(variable, "")
			}
			_, err := boot.Assemble(nil, func(*boot.Environment) lambda.Handler { return nil })
			if err == nil || !strings.Contains(err.Error(), "AWS_REGION, AWS_ACCESS_KEY_ID") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The warm-up opens a connection that the first call then uses, and sends
// nothing that is signed.
func TestTheFirstCallFindsItsConnectionOpen(t *testing.T) {
	var connections, signed, unsigned atomic.Int64
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			signed.Add(1)
		} else if r.Method == http.MethodGet && r.URL.Path == "/" {
			unsigned.Add(1)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte("{}"))
	}))
	service.Config.ConnState = counting(&connections)
	service.Start()
	defer service.Close()
	lambdaSets(t, service.URL)
	var db *dynamodb.Client
	_, err := boot.Assemble(nil, func(env *boot.Environment) lambda.Handler {
		db = dynamodb.NewFromConfig(env.AWS)
		env.WarmUp(
			func(ctx context.Context) (smithyendpoints.Endpoint, error) {
				o := db.Options()
				return o.EndpointResolverV2.ResolveEndpoint(ctx, dynamodb.EndpointParameters{Region: &o.Region, Endpoint: o.BaseEndpoint}.WithDefaults())
			},
			func(context.Context) (smithyendpoints.Endpoint, error) {
				return smithyendpoints.Endpoint{}, errors.New("ignored")
			},
		)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if unsigned.Load() != 1 || signed.Load() != 0 {
		t.Errorf("the warm-up sent %d unsigned and %d signed requests, want 1 and 0", unsigned.Load(), signed.Load())
	}
	opened := connections.Load()
	ctx, count := calls.Start(t.Context())
	if _, err := db.ListTables(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if connections.Load() != opened {
		t.Error("the first call opened a connection of its own")
	}
	if count.Made() != 1 || count.InLine() != 1 {
		t.Errorf("counted %d calls, %d in line", count.Made(), count.InLine())
	}
}

func TestRetriesAreCountedAndBounded(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		calls  int64
	}{
		"conflict":              {`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"x"}`, 3},
		"throttled transaction": {`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[{"Code":"None"},{"Code":"ThrottlingError"}]}`, 3},
		"cancelled transaction": {`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[{"Code":"ConditionalCheckFailed"},{"Code":"ThrottlingError"}]}`, 1},
		"validation":            {`{"__type":"com.amazon.coral.validate#ValidationException","message":"x"}`, 1},
	} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(c.answer))
		}))
		defer service.Close()
		lambdaSets(t, service.URL)
		var db *dynamodb.Client
		if _, err := boot.Assemble(nil, func(env *boot.Environment) lambda.Handler {
			db = dynamodb.NewFromConfig(env.AWS)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		ctx, count := calls.Start(t.Context())
		in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{}}
		if _, err := db.TransactWriteItems(ctx, in); err == nil {
			t.Errorf("%s: no error", name)
		}
		if count.Made() != c.calls || count.InLine() != c.calls {
			t.Errorf("%s: %d calls, %d in line, want %d", name, count.Made(), count.InLine(), c.calls)
		}
	}
}

func TestAnAnswerThatCannotBeReadIsAskedForAgain(t *testing.T) {
	over := make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	for name, answer := range map[string]func(http.ResponseWriter){
		"late": func(http.ResponseWriter) { <-over },
		"stalled": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			<-over
		},
		"garbled":              func(w http.ResponseWriter) { _, _ = w.Write([]byte("<{[")) },
		"empty":                func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) },
		"null":                 func(w http.ResponseWriter) { _, _ = w.Write([]byte("null")) },
		"white space":          func(w http.ResponseWriter) { _, _ = w.Write([]byte(" \r\n\t")) },
		"no content":           func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) },
		"accepted":             func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted); _, _ = w.Write([]byte("{}")) },
		"empty, length untold": func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
		"cut": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		},
	} {
		var asked atomic.Int64
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			if asked.Add(1) == 1 {
				answer(w)
				return
			}
			_, _ = w.Write([]byte("\n{}"))
		}))
		defer service.Close()
		defer end()
		lambdaSets(t, service.URL)
		var db *dynamodb.Client
		if _, err := boot.Assemble(nil, func(env *boot.Environment) lambda.Handler {
			db = dynamodb.NewFromConfig(env.AWS)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ListTables(t.Context(), nil); err != nil || asked.Load() != 2 {
			t.Errorf("%s: asked %d times, %v", name, asked.Load(), err)
		}
	}
}

func TestSideBySideCountsTheLongestBranch(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte("{}"))
	}))
	defer service.Close()
	lambdaSets(t, service.URL)
	var db *dynamodb.Client
	if _, err := boot.Assemble(nil, func(env *boot.Environment) lambda.Handler {
		db = dynamodb.NewFromConfig(env.AWS)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	call := func(ctx context.Context) {
		if _, err := db.ListTables(ctx, nil); err != nil {
			t.Error(err)
		}
	}
	ctx, count := calls.Start(t.Context())
	call(ctx)
	calls.Together(ctx, call, func(ctx context.Context) { call(ctx); call(ctx) }, func(context.Context) {})
	call(ctx)
	if count.Made() != 5 || count.InLine() != 4 {
		t.Errorf("%d calls, %d in line, want 5 and 4", count.Made(), count.InLine())
	}
}

func counting(n *atomic.Int64) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			n.Add(1)
		}
	}
}
