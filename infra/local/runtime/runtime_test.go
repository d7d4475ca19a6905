package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/runtime"
)

// start runs the test function under the settings.
func start(t *testing.T, change func(*runtime.Config)) *runtime.Lambda {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := runtime.Config{
		Functions: []runtime.Function{{
			Name: "F", Binary: binary, Handler: "bootstrap", MemoryMB: 256, Timeout: 10 * time.Second,
			Environment: map[string]string{"TABLE": "things", "AWS_REGION": "elsewhere", "AWS_ENDPOINT_URL_S3": ""},
		}},
		Region: "us-east-1", Account: "000000000000",
		Environment: map[string]string{"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"},
		Output:      func(string, []byte) {},
		Log:         slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	l, err := runtime.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func invoke(t *testing.T, l *runtime.Lambda, do, text string) (answer, error) {
	t.Helper()
	request, err := json.Marshal(map[string]string{"Do": do, "Text": text})
	if err != nil {
		t.Fatal(err)
	}
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
	var failed *runtime.FunctionError
	if !errors.As(err, &failed) || failed.Type != kind || !strings.Contains(failed.Message, message) {
		t.Errorf("got error %v, want %s: %s", err, kind, message)
	}
}

func TestInvoke(t *testing.T) {
	l := start(t, nil)
	first := mustInvoke(t, l, "", "hello ü")
	if first.Text != "hello ü" || first.ARN != "arn:aws:lambda:us-east-1:000000000000:function:F" {
		t.Errorf("got %+v", first)
	}
	if first.Remaining < 8000 || first.Remaining > 10000 {
		t.Errorf("%d ms to the deadline, want 10 s", first.Remaining)
	}
	if second := mustInvoke(t, l, "", ""); second.PID != first.PID {
		t.Error("the idle instance was not used again")
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("FROM_THE_SHELL", "secret")
	got := make(map[string]string)
	for _, line := range mustInvoke(t, start(t, nil), "", "").Environment {
		name, value, _ := strings.Cut(line, "=")
		got[name] = value
	}
	for name, want := range map[string]string{
		"TABLE": "things", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
		"AWS_LAMBDA_FUNCTION_NAME": "F", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_LAMBDA_LOG_FORMAT": "JSON",
		"TZ": ":UTC", "_HANDLER": "bootstrap",
	} {
		if got[name] != want {
			t.Errorf("%s=%q, want %q", name, got[name], want)
		}
	}
	if _, ok := got["FROM_THE_SHELL"]; ok {
		t.Error("a variable of the shell reached the function")
	}
}

func TestOneRequestAtATime(t *testing.T) {
	l := start(t, func(c *runtime.Config) { c.Instances = 3 })
	var mu sync.Mutex
	processes := make(map[int]int)
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			a := mustInvoke(t, l, "wait", "")
			if a.Together != 1 {
				t.Errorf("%d requests at once in one instance", a.Together)
			}
			mu.Lock()
			defer mu.Unlock()
			processes[a.PID]++
		})
	}
	all.Wait()
	if len(processes) != 3 {
		t.Errorf("%d instances answered, want 3: %v", len(processes), processes)
	}
}

func TestThrottled(t *testing.T) {
	l := start(t, func(c *runtime.Config) {
		c.Instances, c.Wait, c.Functions[0].Timeout = 1, 100*time.Millisecond, 2*time.Second
	})
	mustInvoke(t, l, "", "")
	hung := make(chan error, 1)
	go func() {
		_, err := invoke(t, l, "hang", "")
		hung <- err
	}()
	// Whichever of the two comes second waits in vain.
	_, err := invoke(t, l, "hang", "")
	other := <-hung
	if errors.Is(err, runtime.ErrThrottled) == errors.Is(other, runtime.ErrThrottled) {
		t.Errorf("got %v and %v, want one to be throttled", err, other)
	}
}

func TestFailures(t *testing.T) {
	l := start(t, func(c *runtime.Config) { c.Functions[0].Timeout = time.Second })
	healthy := mustInvoke(t, l, "", "").PID

	_, err := invoke(t, l, "fail", "no such thing")
	wantError(t, err, "errorString", "no such thing")
	if a := mustInvoke(t, l, "", ""); a.PID != healthy {
		t.Error("a reported error cost the instance")
	}

	_, err = invoke(t, l, "grow", "")
	wantError(t, err, "Function.ResponseSizeTooLarge", "6 MB")

	_, err = invoke(t, l, "panic", "oh")
	wantError(t, err, "string", "oh")
	mustInvoke(t, l, "", "")

	_, err = invoke(t, l, "exit", "")
	wantError(t, err, "Runtime.ExitError", "exit status 7")
	mustInvoke(t, l, "", "")

	_, err = invoke(t, l, "hang", "")
	wantError(t, err, "Sandbox.Timedout", "Task timed out after 1.00 seconds")
	mustInvoke(t, l, "", "")

	if _, err = l.Invoke(context.Background(), "F", make([]byte, runtime.MaxPayload+1)); !errors.Is(err, runtime.ErrTooLarge) {
		t.Errorf("got %v for a request over 6 MB", err)
	}
	if _, err = l.Invoke(context.Background(), "G", nil); !errors.Is(err, runtime.ErrUnknown) {
		t.Errorf("got %v for an unknown function", err)
	}
}

// A killed instance costs at most the request that is on its way to it.
func TestKilled(t *testing.T) {
	l := start(t, nil)
	for range 20 {
		pid := mustInvoke(t, l, "", "").PID
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _, err := invoke(t, l, "", ""); err != nil {
			wantError(t, err, "Runtime.ExitError", "signal: killed")
		}
		if next := mustInvoke(t, l, "", ""); next.PID == pid {
			t.Error("the killed process answered")
		}
	}
}

func TestFunctionThatCannotStart(t *testing.T) {
	var mu sync.Mutex
	var output []string
	l := start(t, func(c *runtime.Config) {
		c.Functions[0].Environment = map[string]string{"FAIL_INIT": "yes"}
		c.Output = func(function string, line []byte) {
			mu.Lock()
			defer mu.Unlock()
			output = append(output, function+": "+string(line))
		}
	})
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			_, err := invoke(t, l, "", "")
			wantError(t, err, "Runtime.ExitError", "exit status 3")
		})
	}
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(output) == 0 || output[0] != "F: cannot start" {
		t.Errorf("output is %q", output)
	}
}

func TestOutputIsCutIntoLines(t *testing.T) {
	lines := make(chan string, 4)
	l := start(t, func(c *runtime.Config) { c.Output = func(_ string, line []byte) { lines <- string(line) } })
	mustInvoke(t, l, "print", "one\nsaid two")
	got := []string{<-lines, <-lines}
	if diff := cmp.Diff([]string{"said one", "said two"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestClose(t *testing.T) {
	l := start(t, func(c *runtime.Config) { c.Instances = 1 })
	pid := mustInvoke(t, l, "", "").PID
	l.Close()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the instance is still there: %v", err)
	}
	if _, err := invoke(t, l, "", ""); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("got %v after Close", err)
	}
}

func TestMissingProgram(t *testing.T) {
	_, err := runtime.New(runtime.Config{Functions: []runtime.Function{{Name: "F", Binary: "/nowhere/a"}, {Name: "G", Binary: "/nowhere/b"}}})
	if err == nil || err.Error() != "no program at /nowhere/a, /nowhere/b" {
		t.Errorf("got %v", err)
	}
}
