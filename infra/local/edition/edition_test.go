package edition_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/local/child/childtest"
	"signalbox.dev/infra/local/edition"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/syncjobs"
)

const startTime = time.Minute

// options are those of a fresh edition of the project's own template.
func options(t *testing.T) edition.Options {
	t.Helper()
	return edition.Options{Root: "../../..", State: t.TempDir(), Functions: os.Getenv("SIGNALBOX_FUNCTIONS")}
}

func start(t *testing.T, o edition.Options) *edition.Edition {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	e, err := edition.Start(ctx, o)
	if err != nil {
		t.Fatalf("no edition to test (run `make functions engines` first): %v", err)
	}
	return e
}

// running is an edition that is closed at the end of the test.
func running(t *testing.T, o edition.Options) *edition.Edition {
	t.Helper()
	e := start(t, o)
	t.Cleanup(func() { stop(t, e) })
	return e
}

func stop(t *testing.T, e *edition.Edition) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}

// ask sends a request and returns status and body.
func ask(t *testing.T, method, url, key, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func TestThreeOperations(t *testing.T) {
	e := running(t, options(t))
	for status, id := range e.Demo.SyncJobs {
		code, body := ask(t, http.MethodGet, e.BaseURL+"/scim/sync-jobs/"+string(id), e.Demo.ManagementKey, "")
		if code != http.StatusOK || !strings.Contains(body, `"status":"`+string(status)+`"`) {
			t.Errorf("%s job: %d %s", status, code, body)
		}
	}
	if len(e.Demo.SyncJobs) != 4 {
		t.Errorf("jobs are %v", e.Demo.SyncJobs)
	}
	code, body := ask(t, http.MethodPost, e.BaseURL+"/byok", e.Demo.ManagementKey, `{"provider":"openai","key":"sk-0123456789abcdef"}`)
	if code != http.StatusCreated || strings.Contains(body, "0123456789") {
		t.Errorf("create: %d %s", code, body)
	}
	file := e.BaseURL + "/files/" + string(e.Demo.Files[e.Demo.WorkspaceID][0])
	for _, want := range []int{http.StatusOK, http.StatusNotFound} {
		if code, body := ask(t, http.MethodDelete, file, e.Demo.APIKey, ""); code != want {
			t.Errorf("delete: %d %s, want %d", code, body, want)
		}
	}
}

func TestFactsForOtherPrograms(t *testing.T) {
	o := options(t)
	e := running(t, o)
	var facts struct {
		BaseURL        string                     `json:"base_url"`
		ManagementKey  string                     `json:"management_key"`
		APIKey         string                     `json:"api_key"`
		AccountID      string                     `json:"account_id"`
		WorkspaceID    string                     `json:"workspace_id"`
		OtherWorkspace string                     `json:"other_workspace_id"`
		SyncJobs       map[syncjobs.Status]string `json:"sync_jobs"`
		Files          map[string][]string        `json:"files"`
	}
	readPrivate(t, filepath.Join(o.State, "demo.json"), &facts)
	if facts.BaseURL != e.BaseURL || facts.ManagementKey == "" || facts.APIKey == "" || facts.AccountID == "" {
		t.Errorf("demo.json lacks something: %+v", facts)
	}
	if len(facts.Files[facts.WorkspaceID]) < 20 || len(facts.Files[facts.OtherWorkspace]) < 5 || len(facts.SyncJobs) != 4 {
		t.Errorf("demo.json has too few jobs or files: %+v", facts)
	}
	var stack struct {
		Region      string
		Endpoints   struct{ DynamoDB, KMS, S3 string }
		AccessKeyID string `json:"access_key_id"`
		Outputs     map[string]string
	}
	readPrivate(t, filepath.Join(o.State, "stack.json"), &stack)
	if stack.Endpoints.DynamoDB == "" || stack.Endpoints.KMS == "" || stack.Endpoints.S3 == "" || stack.AccessKeyID == "" {
		t.Errorf("stack.json lacks endpoints: %+v", stack)
	}
	for _, name := range []string{"AccessTableName", "CredentialsTableName", "SyncJobsTableName", "ControlTableName", "FilesBucketName", "SealingKeyArn"} {
		if stack.Outputs[name] == "" {
			t.Errorf("stack.json lacks %s", name)
		}
	}
}

// readPrivate decodes a file that only its owner may read.
func readPrivate(t *testing.T, path string, into any) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %v", path, info.Mode())
	}
	text, err := os.ReadFile(path) //nolint:gosec // a file of the state folder
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func TestStateSurvivesARestart(t *testing.T) {
	o := options(t)
	first := start(t, o)
	before := first.Demo
	file := before.Files[before.WorkspaceID][0]
	if code, body := ask(t, http.MethodDelete, first.BaseURL+"/files/"+string(file), before.APIKey, ""); code != http.StatusOK {
		t.Errorf("delete: %d %s", code, body)
	}
	stop(t, first)

	second := running(t, o)
	after := second.Demo
	if after.ManagementKey != before.ManagementKey || after.AccountID != before.AccountID {
		t.Error("there is another demo account")
	}
	if code, body := ask(t, http.MethodDelete, second.BaseURL+"/files/"+string(file), before.APIKey, ""); code != http.StatusNotFound {
		t.Errorf("the deleted file: %d %s", code, body)
	}
	if got, want := len(after.Files[after.WorkspaceID]), len(before.Files[before.WorkspaceID]); got != want {
		t.Errorf("%d files after the restart, want %d again", got, want)
	}
	for _, id := range after.Files[after.WorkspaceID] {
		if id == file {
			t.Error("the deleted file is listed")
		}
	}
}

func TestParametersReachTheFunctions(t *testing.T) {
	o := options(t)
	o.Parameters = map[string]string{"DeleteBurst": "2", "DeleteRatePerMinute": "1"}
	e := running(t, o)
	for i, want := range []int{200, 200, 429} {
		file := e.Demo.Files[e.Demo.WorkspaceID][i]
		if code, body := ask(t, http.MethodDelete, e.BaseURL+"/files/"+string(file), e.Demo.APIKey, ""); code != want {
			t.Errorf("delete %d: %d %s, want %d", i, code, body, want)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	e := running(t, options(t))
	_, port, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(e.BaseURL, "http://"), "/api/v1"), ":")
	taken, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*edition.Options)
		want   string
	}{
		"a taken port":         {func(o *edition.Options) { o.Port = taken }, "port " + port + " is taken; choose another: make run PORT="},
		"an unknown parameter": {func(o *edition.Options) { o.Parameters = map[string]string{"Nope": "1"} }, "the template has no parameter Nope"},
		"missing functions":    {func(o *edition.Options) { o.Functions = "nowhere" }, "no program at /"},
		"a missing template":   {func(o *edition.Options) { o.Root = "nowhere" }, "reading the template"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			c.change(&o)
			if started, err := edition.Start(t.Context(), o); err == nil {
				stop(t, started)
				t.Error("it started")
			} else if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// localhost may mean either address.
func TestBothLoopbackAddressesAnswer(t *testing.T) {
	e := running(t, options(t))
	hosts := []string{"127.0.0.1", "localhost"}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil { // there is IPv6
		hosts = append(hosts, "[::1]")
		_ = l.Close()
	}
	for _, host := range hosts {
		url := strings.Replace(e.BaseURL, "127.0.0.1", host, 1)
		if code, body := ask(t, http.MethodGet, url+"/nothing", "", ""); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", url, code, body)
		}
	}
}

// broken runs the three operations as the demo account would and returns what
// does not work.
func broken(t *testing.T, e *edition.Edition) (problems []string) {
	t.Helper()
	for _, c := range []struct {
		method, path, key, body string
		want                    int
	}{
		{http.MethodGet, "/scim/sync-jobs/" + string(e.Demo.SyncJobs[syncjobs.Succeeded]), e.Demo.ManagementKey, "", http.StatusOK},
		{http.MethodPost, "/byok", e.Demo.ManagementKey, `{"provider":"openai","key":"sk-0123456789abcdef"}`, http.StatusCreated},
		{http.MethodDelete, "/files/" + string(e.Demo.Files[e.Demo.WorkspaceID][0]), e.Demo.APIKey, "", http.StatusOK},
	} {
		if code, body := ask(t, c.method, e.BaseURL+c.path, c.key, c.body); code != c.want {
			problems = append(problems, fmt.Sprintf("%s: %d %s", c.method, code, body))
		}
	}
	return problems
}

// Whatever becomes of a file or folder of the state, the next start either serves
// or soon names the way out.
func TestDamagedState(t *testing.T) {
	o := options(t)
	stop(t, start(t, o))
	damages := map[string]func(path string) error{
		"removed": os.RemoveAll,
		"garbage": func(path string) error { return os.WriteFile(path, []byte("garbage"), 0o600) },
		"a folder": func(path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		},
		"{}": func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
	}
	err := filepath.WalkDir(o.State, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(o.State, path)
		switch {
		case err != nil || name == ".":
			return err
		case d.Name() == ".vgwlocks", d.Name() == "files":
			return fs.SkipDir
		}
		for damage, do := range damages {
			if d.IsDir() && damage != "removed" || damage == "{}" && filepath.Ext(name) != ".json" ||
				damage == "a folder" && !strings.HasSuffix(name, "-wal") { // which ExtendDB tries for ever to open
				continue
			}
			t.Run(name+" "+damage, func(t *testing.T) {
				t.Parallel()
				damaged := o
				damaged.State = filepath.Join(t.TempDir(), "state")
				// Extended attributes are part of the state.
				if out, err := exec.Command("cp", "-a", o.State, damaged.State).CombinedOutput(); err != nil { //nolint:gosec // folders of the test
					t.Fatalf("%v: %s", err, out)
				}
				if err := do(filepath.Join(damaged.State, name)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), startTime)
				defer cancel()
				e, err := edition.Start(ctx, damaged)
				if err != nil {
					if text := err.Error(); !strings.Contains(text, "`make reset`") || strings.Contains(text, "\n") {
						t.Errorf("want one line that names `make reset`, got %q", text)
					}
					return
				}
				for _, problem := range broken(t, e) {
					t.Error(problem)
				}
				stop(t, e)
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What an operator took from the demo account is made anew at the next start.
func TestDemoIsRepaired(t *testing.T) {
	o := options(t)
	e := start(t, o)
	before := e.Demo
	var stack struct {
		Endpoints struct{ DynamoDB string }
		Outputs   map[string]string
		ID        string `json:"access_key_id"`
		Secret    string `json:"secret_access_key"`
	}
	readPrivate(t, filepath.Join(o.State, "stack.json"), &stack)
	db := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &stack.Endpoints.DynamoDB, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(stack.ID, stack.Secret, ""),
	})
	registry := auth.NewRegistry(db, stack.Outputs["AccessTableName"])
	if err := errors.Join(
		registry.DisableKey(t.Context(), before.AccountID, auth.HashKey(before.ManagementKey)),
		registry.DeleteWorkspace(t.Context(), before.AccountID, before.WorkspaceID),
	); err != nil {
		t.Fatal(err)
	}
	_, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String(stack.Outputs["SyncJobsTableName"]),
		Key:       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "job#" + string(before.SyncJobs[syncjobs.Succeeded])}},
	})
	if err != nil {
		t.Fatal(err)
	}
	stop(t, e)

	var warnings strings.Builder
	o.Warnings = &warnings
	again := running(t, o)
	for _, problem := range broken(t, again) {
		t.Error(problem)
	}
	if again.Demo.AccountID != before.AccountID || again.Demo.SyncJobs[syncjobs.Failed] != before.SyncJobs[syncjobs.Failed] {
		t.Error("what worked was replaced too")
	}
	want := "No longer worked, and was made anew: default workspace, demo management key, demo key, succeeded sync job.\n"
	if warnings.String() != want {
		t.Errorf("got %q, want %q", warnings.String(), want)
	}
}

func TestOneEditionAtATime(t *testing.T) {
	o := options(t)
	e := start(t, o)
	_, err := edition.Start(t.Context(), o)
	want := "another edition uses " + o.State + " (process " + strconv.Itoa(os.Getpid()) + ")"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	stop(t, e)
	lock, err := edition.Lock(o.State)
	if err != nil {
		t.Fatalf("the state is still locked: %v", err)
	}
	_ = lock.Close()
}

func TestTerminal(t *testing.T) {
	var terminal strings.Builder
	o := options(t)
	o.Terminal = &terminal
	e := start(t, o)
	ask(t, http.MethodGet, e.BaseURL+"/scim/sync-jobs/nonsense", e.Demo.ManagementKey, "")
	stop(t, e)
	if got := terminal.String(); !regexp.MustCompile(`^\d\d:\d\d:\d\d  getSyncJob     404  \d+\.\d ms  \n$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	e := running(t, options(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Wait(ctx); err != nil {
		t.Errorf("got %v", err)
	}
}

// A killed engine is started again; requests go on, and nothing is forgotten.
func TestKilledEngines(t *testing.T) {
	e := running(t, options(t))
	job := e.BaseURL + "/scim/sync-jobs/" + string(e.Demo.SyncJobs[syncjobs.Succeeded])
	for i := range 5 {
		for _, pid := range childtest.Of(t, os.Getpid()) {
			if strings.HasSuffix(childtest.Program(pid), "/bootstrap") {
				continue
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
		}
		if code, body := ask(t, http.MethodGet, job, e.Demo.ManagementKey, ""); code != http.StatusOK {
			t.Errorf("job after the kill: %d %s", code, body)
		}
		file := e.BaseURL + "/files/" + string(e.Demo.Files[e.Demo.WorkspaceID][i])
		if code, body := ask(t, http.MethodDelete, file, e.Demo.APIKey, ""); code != http.StatusOK {
			t.Errorf("delete after the kill: %d %s", code, body)
		}
	}
}
