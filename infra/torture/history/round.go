package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/client"
	"signalbox.dev/infra/torture/service"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// round is one history, in an account of its own.
type round struct {
	Config
	service *service.Service
	client  *client.Client
	number  uint64
	began   time.Time

	account    testkit.Tenant
	workspaces []ids.Workspace // live at first; the default is the first
	keys       []string        // management keys
	// bound is a standard key of the second workspace; spare and limited are
	// management keys that are never disabled.
	bound, spare, limited string
	stranger              string // another account's management key
	jobs                  []ids.Job
	files                 []fileAt
	// deleting says of each workspace that its deletion has begun.
	deleting [workspaces]atomic.Bool

	mu  sync.Mutex
	all []porcupine.Operation
	// workspaceOf has the workspace of every credential that was asked for, by
	// name: "" where only the response would have named it.
	workspaceOf map[string]string
	listings    []listing
	// Counts of this round.
	Result
}

// fileAt is a file of the workspace with the number.
type fileAt struct {
	workspace int
	id        ids.File
}

func (f fileAt) content() string { return "the content of " + string(f.id) }

// listing is what a list of a workspace's credentials returned, by name.
type listing struct {
	client    int
	call, end int64
	workspace string
	found     map[string]string
}

// newRound makes everything that clients need, before anything is killed.
func newRound(t testing.TB, c Config, s *service.Service, requests *client.Client, number uint64) *round {
	t.Helper()
	r := &round{Config: c, service: s, client: requests, number: number, began: time.Now(), workspaceOf: map[string]string{}}
	stack, ctx := s.Stack()
	registry := auth.NewRegistry(stack.DynamoDB, stack.Access)
	r.account = testkit.NewTenant(t, registry)
	r.note(clients, 0, 0, defaultSet(string(r.account.ID), string(r.account.Workspace)))
	r.workspaces = append(r.workspaces, r.account.Workspace)
	for len(r.workspaces) < workspaces {
		r.workspaces = append(r.workspaces, r.account.NewWorkspace(t))
	}
	for range keys {
		r.keys = append(r.keys, r.account.ManagementKey(t))
	}
	r.bound, r.spare, r.limited = r.account.StandardKey(t, r.workspaces[1]), r.account.Management, r.account.ManagementKey(t)
	r.stranger = testkit.NewTenant(t, registry).Management
	for range jobs {
		id, err := syncjobs.NewWriter(stack.DynamoDB, stack.Jobs).Create(ctx, r.account.ID)
		testkit.Must(t, err)
		r.jobs = append(r.jobs, id)
	}
	for i := range fileCount {
		f := fileAt{i % workspaces, ids.NewFile()}
		r.files = append(r.files, f)
		for range i % 3 { // a second version, in a versioned bucket
			_, err := stack.S3.PutObject(ctx, &s3.PutObjectInput{
				Bucket: &stack.Files, Key: aws.String(r.objectKey(f)), Body: strings.NewReader(f.content()),
			})
			testkit.Must(t, err)
		}
		if i%3 > 0 {
			r.note(clients, 0, 0, fileUploaded(string(f.id)))
		}
	}
	return r
}

func (r *round) objectKey(f fileAt) string { return files.Key(r.workspaces[f.workspace], f.id) }

// act has all clients act, and returns when they are done.
func (r *round) act() {
	var all sync.WaitGroup
	for number := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(r.Seed, r.number*clients+uint64(number))) //nolint:gosec // repeatable, on purpose
			x := &actor{round: r, random: random, number: number, rough: r.rough()}
			for range actions {
				x.act()
			}
		})
	}
	all.Wait()
}

// exceedLimit deletes an absent file as fast as it can. However often the
// limiter's store is killed, no more may pass than the rate allows.
func (r *round) exceedLimit(ctx context.Context) {
	passed, began := 0, time.Now()
	for ctx.Err() == nil {
		if a, _ := r.client.Delete("file_absent").As(r.limited).Send(ctx); a.Status == http.StatusNotFound {
			passed++
		}
	}
	// Each request was judged later than began and earlier than now.
	if allowed := burst + time.Since(began).Minutes()*ratePerMinute; float64(passed) > allowed+1 {
		r.violation("the limiter let %d pass, its rate allows %.1f", passed, allowed)
	}
}

// judge checks the round, and draws a picture of one that is not allowed.
func (r *round) judge(t testing.TB, result *Result) {
	t.Helper()
	result.Rounds++
	result.Uncertain += r.Uncertain
	result.Throttled += r.Throttled
	result.Opened += r.Opened
	result.Operations += r.Operations
	result.Observations += len(r.all)
	result.Objects += len(byObject(r.all))
	result.Broken = append(result.Broken, r.Broken...)
	verdict, info := porcupine.CheckOperationsVerbose(model(), r.all, searchTimeout)
	if verdict == porcupine.Ok {
		return
	}
	path := filepath.Join(r.State, fmt.Sprintf("history-%d-%d.html", r.Seed, r.number))
	for _, part := range byObject(r.all) {
		if v := porcupine.CheckOperationsTimeout(model(), part, searchTimeout); v != porcupine.Ok {
			result.Broken = append(result.Broken, fmt.Sprintf("%s: its history in round %d is %s: see %s", observed(part[0].Input).object, r.number, v, path))
		}
	}
	testkit.Must(t, porcupine.VisualizePath(model(), info, path))
}

func (r *round) now() int64 { return int64(time.Since(r.began)) }

// note records what an operation showed, from its call to its end.
func (r *round) note(client int, call, end int64, shown ...event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range shown {
		r.all = append(r.all, porcupine.Operation{ClientId: client, Input: e, Call: call, Return: end})
	}
}

// asked records the workspace of a credential that was asked for.
func (r *round) asked(name, workspace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.workspaceOf[name] == "" {
		r.workspaceOf[name] = workspace
	}
}

// count adds one to a count of the round.
func (r *round) count(what *int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*what++
}

// violation records what the contract never allows.
func (r *round) violation(format string, values ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Broken = append(r.Broken, fmt.Sprintf(format, values...))
}
