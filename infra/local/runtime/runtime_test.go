package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"signalbox.dev/infra/local/runtime"
	"signalbox.dev/infra/test/kit"
)

// TestMain makes the test binary run as the Lambda function if there is a Runtime API.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		function()
		return
	}
	m.Run()
}

type request struct {
	Do   string
	Text string
}

type answer struct {
	PID         int
	Text        string
	Environment []string
	// Remaining is the time to the deadline in milliseconds.
	Remaining int64
}

// function is the test function; the request chooses its answer.
func function() {
	if os.Getenv("FAIL_INIT") != "" {
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(3)
	}
	lambda.Start(func(ctx context.Context, r request) (answer, error) {
		a := answer{PID: os.Getpid(), Text: r.Text, Environment: os.Environ()}
		if deadline, ok := ctx.Deadline(); ok {
			a.Remaining = time.Until(deadline).Milliseconds()
		}
		switch r.Do {
		case "print":
			fmt.Println("said", r.Text)
		case "fail":
			return a, errors.New(r.Text)
		case "panic":
			panic(r.Text)
		case "exit":
			os.Exit(7)
		case "hang":
			fmt.Println("busy")
			select {}
		case "visit":
			answer, err := http.Get(r.Text)
			if err != nil {
				return a, err
			}
			return a, answer.Body.Close()
		}
		return a, nil
	})
}

// never is longer than any test takes.
const never = time.Hour

// start runs the test function. Nothing times out unless the change shortens a time-out.
func start(t *testing.T, change func(*runtime.Config)) *runtime.Lambda {
	t.Helper()
	binary, err := os.Executable()
	kit.Must(t, err)
	c := runtime.Config{
		Functions: []runtime.Function{{
			Name: "F", Binary: binary, Handler: "bootstrap", MemoryMB: 256, Timeout: never,
			Environment: map[string]string{"TABLE": "things", "AWS_REGION": "elsewhere", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"},
		}},
		Region: "us-east-1", Account: "000000000000", Wait: never,
		Output: func(string, []byte) {},
		Log:    slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	l, err := runtime.New(c)
	kit.Must(t, err)
	t.Cleanup(l.Close)
	return l
}

func invoke(t *testing.T, l *runtime.Lambda, do, text string) (answer, error) {
	t.Helper()
	request, err := json.Marshal(map[string]string{"Do": do, "Text": text})
	kit.Must(t, err)
	response, err := l.Invoke(context.Background(), "F", request)
	if err != nil {
		return answer{}, err
	}
	var a answer
	if err := json.Unmarshal(response, &a); err != nil {
		t.Errorf("%s: %v", response, err)
	}
	return a, nil
}

func mustInvoke(t *testing.T, l *runtime.Lambda, do, text string) answer {
	t.Helper()
	a, err := invoke(t, l, do, text)
	if err != nil {
		t.Errorf("%s: %v", do, err)
	}
	return a
}

func wantError(t *testing.T, err error, kind, message string) {
	t.Helper()
	failed, ok := errors.AsType[*runtime.FunctionError](err)
	if !ok || failed.Type != kind || !strings.Contains(failed.Message, message) {
		t.Errorf("got error %v, want %s: %s", err, kind, message)
	}
}

func TestInvoke(t *testing.T) {
	t.Setenv("FROM_THE_SHELL", "secret")
	lines := make(chan string, 4)
	l := start(t, func(c *runtime.Config) {
		c.Instances, c.Output = 1, func(_ string, line []byte) { lines <- string(line) }
	})
	first := mustInvoke(t, l, "print", "ü\nsaid two")
	if first.Text != "ü\nsaid two" {
		t.Errorf("got %+v", first)
	}
	if one, two := <-lines, <-lines; one != "said ü" || two != "said two" {
		t.Errorf("output lines %q and %q", one, two)
	}
	if left := time.Duration(first.Remaining) * time.Millisecond; left < never/2 || left > never {
		t.Errorf("%v to the deadline, want %v", left, never)
	}
	environment := make(map[string]string)
	for _, line := range first.Environment {
		name, value, _ := strings.Cut(line, "=")
		environment[name] = value
	}
	for name, want := range map[string]string{
		"TABLE": "things", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
		"AWS_LAMBDA_FUNCTION_NAME": "F", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_LAMBDA_LOG_FORMAT": "JSON",
		"TZ": ":UTC", "_HANDLER": "bootstrap", "FROM_THE_SHELL": "",
	} {
		if environment[name] != want {
			t.Errorf("%s=%q, want %q", name, environment[name], want)
		}
	}
	if second := mustInvoke(t, l, "", ""); second.PID != first.PID {
		t.Error("the idle instance was not used again")
	}
}

// An instance handles one request at a time: requests that wait for each other run in
// instances of their own.
func TestOneRequestAtATime(t *testing.T) {
	const instances = 3
	var arrived sync.WaitGroup
	arrived.Add(instances)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait()
	}))
	defer server.Close()
	l := start(t, func(c *runtime.Config) { c.Instances = instances })
	var all sync.WaitGroup
	for range instances {
		all.Go(func() { mustInvoke(t, l, "visit", server.URL) })
	}
	all.Wait()
}

// If every instance is busy, a request is throttled. Close ends a busy instance.
func TestThrottledAndClosed(t *testing.T) {
	busy := make(chan struct{}, 1)
	l := start(t, func(c *runtime.Config) {
		c.Instances, c.Wait = 1, time.Millisecond
		c.Output = func(string, []byte) { busy <- struct{}{} }
	})
	hung := make(chan error, 1)
	go func() {
		err := runtime.ErrThrottled
		for errors.Is(err, runtime.ErrThrottled) { // the instance takes longer to start
			_, err = invoke(t, l, "hang", "")
		}
		hung <- err
	}()
	<-busy
	if _, err := invoke(t, l, "hang", ""); !errors.Is(err, runtime.ErrThrottled) {
		t.Errorf("got %v while the only instance is busy", err)
	}
	l.Close()
	wantError(t, <-hung, "Runtime.ExitError", "signal: killed")
	if _, err := invoke(t, l, "", ""); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("got %v after Close", err)
	}
}

// A failure is reported, and the next request succeeds. After an error that the function
// returned, it runs in the same process. A function that takes too long is killed.
func TestFailures(t *testing.T) {
	l := start(t, func(c *runtime.Config) { c.Instances = 1 })
	for _, c := range []struct {
		do, kind, message string
		stays             bool // the instance stays
	}{
		{"fail", "errorString", "a text", true},
		{"panic", "string", "a text", false},
		{"exit", "Runtime.ExitError", "exit status 7", false},
	} {
		before := mustInvoke(t, l, "", "").PID
		_, err := invoke(t, l, c.do, "a text")
		wantError(t, err, c.kind, c.message)
		if after := mustInvoke(t, l, "", "").PID; c.stays && after != before {
			t.Errorf("%s ended the instance", c.do)
		}
	}
	if _, err := l.Invoke(context.Background(), "F", make([]byte, runtime.MaxPayload+1)); !errors.Is(err, runtime.ErrTooLarge) {
		t.Errorf("got %v for a request over 6 MB", err)
	}
	_, err := runtime.New(runtime.Config{Functions: []runtime.Function{{Name: "F", Binary: "/nowhere/a"}, {Name: "G", Binary: "/nowhere/b"}}})
	if err == nil || err.Error() != "no program at /nowhere/a, /nowhere/b" {
		t.Errorf("got %v for missing programs", err)
	}
	l = start(t, func(c *runtime.Config) { c.Functions[0].Environment = map[string]string{"FAIL_INIT": "yes"} })
	for range 2 { // the first run leaves nothing behind
		_, err := invoke(t, l, "", "")
		wantError(t, err, "Runtime.ExitError", "exit status 3")
	}
	l = start(t, func(c *runtime.Config) { c.Functions[0].Timeout = 100 * time.Millisecond })
	_, err = invoke(t, l, "hang", "")
	wantError(t, err, "Sandbox.Timedout", "Task timed out after 0.10 seconds")
	for err != nil { // on an overloaded machine this request may take too long as well
		if _, err = invoke(t, l, "", ""); err != nil {
			wantError(t, err, "Sandbox.Timedout", "")
		}
	}
}
