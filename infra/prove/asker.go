package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
)

// target is a deployed stack.
type target struct {
	// name is the stack's, or empty where local is the state of a single-machine
	// edition.
	name, local string
	outputs     map[string]string
	parameters  map[string]string
	// physical names resources by their logical ids.
	physical map[string]string
}

// asker asks probes of a stack.
type asker struct {
	*clients
	target
	root string
	http *http.Client
	// patience bounds each wait for something that AWS does a while later: a metric,
	// a log line, a message.
	patience time.Duration
	// tenant is the test account.
	tenant
	// lifecycle makes deployments. It is nil where only a stack that exists is asked.
	lifecycle *lifecycle
	// suite runs the contract suite. It is nil where that is left out.
	suite func(context.Context, *asker) (finding, error)
	// skipped are tests of the suite that the stack's parameters leave no room for.
	// made is a file to which the suite writes what it makes.
	skipped, made string
	// began is when the first deployment was asked, secondAt the second one, if any.
	began, secondAt time.Time

	secretsMu sync.Mutex
	secrets   []string
}

// tenant is an account made for the probes.
type tenant struct {
	account, workspace   string
	management, standard string
	job                  string
}

// newTenant makes an account with a workspace, keys and a job.
func (a *asker) newTenant(ctx context.Context, name string) (tenant, error) {
	var made struct {
		ID        string `json:"id"`
		Workspace string `json:"default_workspace_id"`
	}
	if err := a.admin(ctx, nil, &made, "account", "create", name); err != nil {
		return tenant{}, err
	}
	t := tenant{account: made.ID, workspace: made.Workspace}
	a.tenant = t
	var err error
	if t.management, err = a.key(ctx, "management"); err != nil {
		return t, err
	}
	if t.standard, err = a.key(ctx, "standard"); err != nil {
		return t, err
	}
	var job struct {
		ID string `json:"id"`
	}
	err = a.admin(ctx, nil, &job, "job", "create", "--account", t.account)
	t.job = job.ID
	return t, err
}

// key makes an API key of the test account.
func (a *asker) key(ctx context.Context, kind string) (string, error) {
	var made struct {
		Key string `json:"key"`
	}
	err := a.admin(ctx, nil, &made, "key", "create", "probe", "--account", a.account, "--kind", kind)
	a.secretsMu.Lock()
	defer a.secretsMu.Unlock()
	a.secrets = append(a.secrets, made.Key)
	return made.Key, err
}

// clean removes API keys from a text.
func (a *asker) clean(text string) string {
	a.secretsMu.Lock()
	defer a.secretsMu.Unlock()
	for _, s := range a.secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "<API key>")
		}
	}
	return text
}

// file uploads a file to the test account's workspace.
func (a *asker) file(ctx context.Context) (string, error) {
	var made struct {
		ID string `json:"id"`
	}
	err := a.admin(ctx, strings.NewReader("a file of make prove"), &made, "file", "upload", "-", "--account", a.account)
	return made.ID, err
}

// admin runs the operator's command and decodes what it prints.
func (a *asker) admin(ctx context.Context, stdin io.Reader, into any, args ...string) error {
	on := []string{"--stack", a.name}
	if a.local != "" {
		on = []string{"--local", a.local}
	}
	command := exec.CommandContext(ctx, filepath.Join(a.root, ".build", "admin"), append(append(on, "--json"), args...)...) //nolint:gosec // our own command
	command.Env = append(os.Environ(), "AWS_REGION="+a.config.Region)
	var out, problems bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = stdin, &out, &problems
	if err := command.Run(); err != nil {
		return fmt.Errorf("admin %s: %w: %s", strings.Join(args[:2], " "), err, problems.String())
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		return fmt.Errorf("admin %s: reading what it printed: %w", strings.Join(args[:2], " "), err)
	}
	return nil
}

// stored reports how many versions and delete markers of a file there are.
func (a *asker) stored(ctx context.Context, file string) (int, error) {
	key := files.Key(ids.Workspace(a.workspace), ids.File(file))
	bucket := a.outputs["FilesBucketName"]
	out, err := a.s3.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket, Prefix: &key})
	if err != nil {
		return 0, fmt.Errorf("listing the versions of a file: %w", err)
	}
	return len(out.Versions) + len(out.DeleteMarkers), nil
}

// request is a request to the API.
type request struct {
	method, path string // the path below /api/v1, as it goes over the wire
	key          string
	header       map[string]string
	body         []byte
}

// answer is a whole response.
type answer struct {
	status int
	header http.Header
	body   string
}

const contentJSON = "application/json"

func get(id, key string) request {
	return request{method: http.MethodGet, path: "/scim/sync-jobs/" + id, key: key}
}

func remove(file, key string) request {
	return request{method: http.MethodDelete, path: "/files/" + file, key: key}
}

func post(key string, body []byte) request {
	return request{method: http.MethodPost, path: "/byok", key: key, body: body, header: map[string]string{"Content-Type": contentJSON}}
}

// newCredential is a body that creates a credential.
func newCredential() []byte {
	return []byte(`{"provider":"openai","key":"sk-proj-0123456789abcdefProve"}`)
}

func (r request) with(name, value string) request {
	header := map[string]string{name: value}
	maps.Copy(header, r.header)
	r.header = header
	return r
}

// send sends a request as it is, and reads the answer.
func (a *asker) send(ctx context.Context, r request) (answer, error) {
	base, err := url.Parse(a.outputs["ApiBaseUrl"])
	if err != nil {
		return answer{}, err
	}
	base.Opaque = base.Path + r.path // unchanged into the request line
	q := (&http.Request{Method: r.method, URL: base, Host: base.Host, Header: http.Header{}, Body: http.NoBody}).WithContext(ctx)
	if len(r.body) > 0 {
		q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(r.body)), int64(len(r.body))
	}
	for name, value := range r.header {
		q.Header.Set(name, value)
	}
	if r.key != "" {
		q.Header.Set("Authorization", "Bearer "+r.key)
	}
	response, err := a.http.Do(q)
	if err != nil {
		return answer{}, fmt.Errorf("sending %s %s: %w", r.method, a.clean(r.path), err)
	}
	defer func() { _ = response.Body.Close() }() // all of it is read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer to %s %s: %w", r.method, a.clean(r.path), err)
	}
	return answer{response.StatusCode, response.Header, string(body)}, nil
}

// sendAll sends requests at one instant and counts the statuses.
func (a *asker) sendAll(ctx context.Context, requests []request) ([]answer, map[int]int, error) {
	answers, errs := make([]answer, len(requests)), make([]error, len(requests))
	start := make(chan struct{})
	var group sync.WaitGroup
	for i, r := range requests {
		group.Go(func() {
			<-start
			answers[i], errs[i] = a.send(ctx, r)
		})
	}
	close(start)
	group.Wait()
	statuses := map[int]int{}
	for _, got := range answers {
		statuses[got.status]++
	}
	return answers, statuses, errors.Join(errs...)
}

// problem is why an answer is not one of our errors with the status; "" where it is.
func (r answer) problem(status int) string {
	var body struct {
		Error struct {
			Code     int    `json:"code"`
			Message  string `json:"message"`
			Metadata *struct {
				RequestID string `json:"request_id"`
			} `json:"metadata"`
		} `json:"error"`
	}
	switch err := json.Unmarshal([]byte(r.body), &body); {
	case r.status != status:
		return fmt.Sprintf("status %d, not %d", r.status, status)
	case err != nil || body.Error.Message == "" || body.Error.Metadata == nil:
		return "the body is not our envelope"
	case body.Error.Code != status:
		return fmt.Sprintf("code %d in the body of a %d", body.Error.Code, status)
	case r.header.Get("X-Request-Id") == "":
		return "no X-Request-Id"
	case body.Error.Metadata.RequestID != r.header.Get("X-Request-Id"):
		return "X-Request-Id is not the request_id of the body"
	}
	return ""
}

// String shows an answer in a line.
func (r answer) String() string {
	body := r.body
	if len(body) > 160 {
		body = body[:160] + "…"
	}
	text := fmt.Sprintf("%d %s", r.status, body)
	if kind := r.header.Get("X-Amzn-Errortype"); kind != "" {
		text += " (x-amzn-ErrorType: " + kind + ")"
	}
	return text
}

// eventually repeats ask, less and less often, until it reports true or patience
// is at its end.
func (a *asker) eventually(ctx context.Context, ask func() (bool, error)) (bool, error) {
	return until(ctx, a.patience, ask)
}

// until repeats ask for as long as that. The pauses grow from a fifth of a second to
// ten seconds.
func until(ctx context.Context, limit time.Duration, ask func() (bool, error)) (bool, error) {
	end := time.Now().Add(limit)
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		done, err := ask()
		if done || err != nil {
			return done, err
		}
		left := time.Until(end)
		if left <= 0 {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(min(pause, left)):
		}
	}
}
