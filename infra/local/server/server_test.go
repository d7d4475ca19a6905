package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/child/childtest"
	"signalbox.dev/infra/local/demo"
	"signalbox.dev/infra/local/samlocal"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/client"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/syncjobs"
)

const startTime = 3 * time.Minute

// filled is the state folder of a local server that was started once and closed.
var filled string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "server-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	filled = filepath.Join(dir, "state")
	e, err := Start(context.Background(), inState(filled))
	if err == nil {
		err = e.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "no local server to test (run `make build` first):", err)
		return 1
	}
	return m.Run()
}

func inState(folder string) Options {
	return Options{Root: "../../..", State: folder}
}

// options returns those of a local server of the project's own template with a copy of
// the filled state folder.
func options(t *testing.T) Options {
	t.Helper()
	o := inState(filepath.Join(t.TempDir(), "state"))
	// Extended attributes are part of the state.
	if out, err := exec.Command("cp", "-a", filled, o.State).CombinedOutput(); err != nil { //nolint:gosec // folders of the test
		t.Fatalf("%v: %s", err, out)
	}
	return o
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	e, err := Start(ctx, o)
	kit.Must(t, err)
	return e
}

func stop(t *testing.T, e *Server) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}

func getJob(e *Server, status syncjobs.Status) client.Request {
	return client.New(e.BaseURL, 1).Get(string(e.Demo.SyncJobs[status])).As(e.Demo.ManagementKey)
}

func deleteFile(e *Server, i int) client.Request {
	return client.New(e.BaseURL, 1).Delete(string(e.Demo.Files[e.Demo.WorkspaceID][i])).As(e.Demo.APIKey)
}

// wantServing sends the demo account's request of each operation, and returns how many
// these are. One of them deletes the file 1.
func wantServing(t *testing.T, e *Server) int {
	t.Helper()
	requests, err := e.Demo.Requests()
	kit.Must(t, err)
	for _, r := range requests {
		r.RequestURI = "" // a client must not set it
		answer, err := http.DefaultClient.Do(r)
		kit.Must(t, err)
		kit.Must(t, answer.Body.Close())
		if answer.StatusCode >= http.StatusMultipleChoices {
			t.Errorf("%s %s: %s", r.Method, r.URL, answer.Status)
		}
	}
	return len(requests)
}

func TestServer(t *testing.T) {
	var terminal strings.Builder
	o := options(t)
	o.Parameters = map[string]string{"DeleteBurst": "2", "DeleteRatePerMinute": "1"}
	o.Terminal = &terminal
	e := start(t, o)
	for status := range e.Demo.SyncJobs {
		if got := getJob(e, status).Do(t); !strings.Contains(string(got.Body), `"status":"`+string(status)+`"`) {
			t.Errorf("%s job: %s", status, got.Body)
		}
	}
	served := wantServing(t, e) + len(e.Demo.SyncJobs)
	deleteFile(e, 1).Do(t).Is(t, http.StatusNotFound)
	deleteFile(e, 0).Do(t).Is(t, http.StatusTooManyRequests) // by the parameters
	served += 2
	hosts := []string{"127.0.0.1", "localhost"}             // which may mean either address
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil { // there is IPv6
		hosts = append(hosts, "[::1]")
		_ = l.Close()
	}
	for _, host := range hosts {
		client.New(strings.Replace(e.BaseURL, "127.0.0.1", host, 1), 1).Unrouted(http.MethodGet, "/nothing").Do(t).Is(t, http.StatusNotFound)
	}
	// .ci/sam tests the files for `sam local`. Its proxy refuses a page of another site.
	var environment map[string]map[string]string
	readPrivate(t, filepath.Join(o.State, samlocal.Folder, "env.json"), &environment)
	for function := range environment {
		if _, err := os.Stat(filepath.Join(o.State, "events", function+".json")); err != nil {
			t.Errorf("%s has no sample event; add its call to infra/local/demo: %v", function, err)
		}
	}
	proxy := strings.Replace(environment["GetSyncJobFunction"]["AWS_ENDPOINT_URL_DYNAMODB"], samlocal.Host, "127.0.0.1", 1)
	client.New(proxy, 1).Post("{}").As("Credential=AKID/20260101/us-east-1/dynamodb/aws4_request,").Do(t).Is(t, http.StatusForbidden)
	checkFacts(t, e, o.State)
	checkRefusals(t, e, o)
	checkPages(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Wait(ctx); err != nil {
		t.Errorf("Wait with a context that is done: %v", err)
	}
	stop(t, e)
	line := regexp.MustCompile(`^\d\d:\d\d:\d\d [a-zA-Z]+ [245]\d\d \d+\.\d ms( [a-z_]+)?$`)
	lines := strings.Split(strings.TrimSuffix(terminal.String(), "\n"), "\n")
	if len(lines) != served || slices.ContainsFunc(lines, func(l string) bool { return !line.MatchString(l) }) {
		t.Errorf("want a line for each of %d requests, got\n%s", served, terminal.String())
	}
}

// checkFacts checks the file that other programs read.
func checkFacts(t *testing.T, e *Server, state string) {
	t.Helper()
	var facts demo.Facts
	readPrivate(t, filepath.Join(state, "demo.json"), &facts)
	if diff := cmp.Diff(e.Demo, facts); diff != "" {
		t.Errorf("demo.json differs:\n%s", diff)
	}
	if len(facts.Files[facts.WorkspaceID]) < 20 || len(facts.SyncJobs) != 4 {
		t.Errorf("too few files or sync jobs: %v %v", facts.Files, facts.SyncJobs)
	}
}

// readPrivate decodes a file that only its owner may read.
func readPrivate(t *testing.T, path string, into any) {
	t.Helper()
	info, err := os.Stat(path)
	kit.Must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %v", path, info.Mode())
	}
	text, err := os.ReadFile(path) //nolint:gosec // a file of the state folder
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// checkRefusals checks that no second server starts beside the running one with
// its state or port. What the command's options refuse is tested there.
func checkRefusals(t *testing.T, running *Server, o Options) {
	t.Helper()
	_, port, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(running.BaseURL, "http://"), "/api/v1"), ":")
	taken, err := strconv.Atoi(port)
	kit.Must(t, err)
	samePort, noTemplate := inState(t.TempDir()), inState(t.TempDir())
	samePort.Port, noTemplate.Root = taken, "nowhere"
	for want, o := range map[string]Options{
		"another local server uses " + o.State + " (" + running.BaseURL + ", process " + strconv.Itoa(os.Getpid()) + ")": o,
		"port " + port + " is taken; choose another: make run PORT=":                                                     samePort,
		"reading the template": noTemplate,
	} {
		if started, err := Start(t.Context(), o); err == nil {
			stop(t, started)
			t.Errorf("it started; want %q", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// checkPages checks that the reference page and the demo account's keys are served for this
// machine's own names only. Other requests get the gateway's response.
func checkPages(t *testing.T, e *Server) {
	t.Helper()
	at := strings.TrimSuffix(e.BaseURL, "/api/v1")
	for _, c := range []struct {
		method, target, host string
		status               int
		kind, content        string
	}{
		{"GET", "/docs", "localhost:3000", 200, "text/html", "<title>Signalbox API reference</title>"},
		{"GET", "/docs/swagger-ui-bundle.js", "[::1]:3000", 200, "text/javascript", "SwaggerUIBundle"},
		{"GET", "/docs/openapi.yaml", "127.0.0.1", 200, "application/yaml", "openapi: 3.1.0"},
		{"GET", "/docs/demo.json", "localhost", 200, "application/json", e.Demo.ManagementKey},
		{"GET", "/docs/demo.json", "rebound.example:3000", 421, "text/plain", "open this page as"},
		{"GET", "/docs/", "127.0.0.1.rebound.example", 421, "text/plain", "open this page as"},
		{"POST", "/docs/", "localhost", 404, "application/json", "Resource not found"},
		{"GET", "/docs/%64emo.json", "localhost", 404, "application/json", "Resource not found"},
	} {
		request := httptest.NewRequestWithContext(t.Context(), c.method, at, http.NoBody)
		request.RequestURI, request.Host, request.URL.Opaque = "", c.host, c.target
		response, err := http.DefaultClient.Do(request)
		kit.Must(t, err)
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		kind := response.Header.Get("Content-Type")
		if err != nil || response.StatusCode != c.status || !strings.HasPrefix(kind, c.kind) || !strings.Contains(string(body), c.content) || response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s of %s: %d %s %.200s %v, want %+v", c.method, c.target, c.host, response.StatusCode, kind, body, err, c)
		}
	}
}

// With a damaged state the local server serves, or its start fails with one line that ends with
// the way out.
func TestDamagedState(t *testing.T) {
	const (
		reset = "make reset, which removes every account, credential, sync job and file in it"
		renew = "remove this file; the next start makes a new demo account and keeps everything else"
	)
	type damage struct{ file, content, want string }
	cases := []damage{
		{"engines/kms/keys.json", "removed", reset},
		{"engines/kms/keys.json", "garbage", reset},
		{"engines/kms/keys.json", "{}", reset},
		{"engines/objects", "removed", reset},
		{"resources.json", "garbage", reset},
		{"demo.json", "removed", ""},
		{"demo.json", "garbage", renew},
	}
	const database = "engines/extenddb/extenddb.sqlite"
	if _, err := os.Stat(filepath.Join(filled, database)); err == nil { // else another engine runs
		cases = append(cases, damage{database, "removed", reset}, damage{database, "garbage", reset})
	}
	for _, c := range cases {
		t.Run(c.file+" "+c.content, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			path := filepath.Join(o.State, c.file)
			kit.Must(t, os.RemoveAll(path))
			if c.content != "removed" {
				kit.Must(t, os.WriteFile(path, []byte(c.content), 0o600))
			}
			ctx, cancel := context.WithTimeout(t.Context(), startTime)
			defer cancel()
			e, err := Start(ctx, o)
			if err == nil {
				wantServing(t, e)
				stop(t, e)
			}
			if text := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.HasSuffix(text, c.want) && err != nil || strings.Contains(text, "\n") {
				t.Errorf("want one line that ends with %q, got %q", c.want, text)
			}
		})
	}
}

// After the demo's workspace is deleted, the next start offers calls that succeed.
func TestADemoAccountThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	o := options(t)
	e := start(t, o)
	old := e.Demo
	stack, err := kit.OpenStack(t.Context(), filepath.Join(o.State, "stack.json"))
	kit.Must(t, err)
	kit.Must(t, auth.NewRegistry(stack.DynamoDB, stack.Access).DeleteWorkspace(t.Context(), old.AccountID, old.WorkspaceID))
	stop(t, e)
	e = start(t, o)
	defer stop(t, e)
	wantServing(t, e)
	if e.Demo.AccountID == old.AccountID {
		t.Error("the demo account is the same")
	}
}

// Nothing is damaged if the user may not write: a reset would be the wrong advice.
func TestAFolderThatCannotBeWritten(t *testing.T) {
	s := &Server{options: Options{State: t.TempDir()}, used: true}
	for _, cause := range []error{syscall.EACCES, syscall.EPERM, syscall.EROFS} {
		err := s.advise(t.Context(), &fs.PathError{Op: "open", Path: "lock", Err: cause})
		if !errors.Is(err, cause) || strings.Contains(err.Error(), "reset") || !strings.Contains(err.Error(), "cannot be written") {
			t.Errorf("%v: %v", cause, err)
		}
	}
}

// A killed engine ends the local server. The next start serves what is stored.
func TestAKilledEngine(t *testing.T) {
	o := options(t)
	e := start(t, o)
	for _, pid := range childtest.Of(t, os.Getpid()) {
		if !strings.HasSuffix(childtest.Program(pid), "/bootstrap") {
			kit.Must(t, syscall.Kill(pid, syscall.SIGKILL))
			break
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	if err := e.Wait(ctx); !strings.Contains(fmt.Sprint(err), "an engine stopped: ") || !strings.Contains(fmt.Sprint(err), "killed") {
		t.Errorf("the local server ended with: %v", err)
	}
	stop(t, e)
	e = start(t, o)
	wantServing(t, e)
	stop(t, e)
}
