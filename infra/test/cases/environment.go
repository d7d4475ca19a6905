package cases

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"signalbox.dev/infra/local/awsclients"
	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/boot"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// Environment is the storage of one trial, and a tenant in it: the model of AWS in a bubble of
// virtual time, or the real engines.
type Environment struct {
	Clients // without faults
	Tenant  kit.Tenant
	// Outputs are the names of the tables, the bucket and the key, as the stack's outputs.
	Outputs    kit.Outputs
	Versioning string
	Before     string // an access table for the time before a restore
	OldKey     string // another KMS key

	t        *testing.T
	config   aws.Config
	storage  aws.HTTPClient
	setup    *setup
	model    *awsmodel.World // nil on engines
	prepared prepared        // the last one

	mu       sync.Mutex
	skipped  time.Duration // by pauses on engines
	waited   chan struct{} // closed on engines after the first pause, which is longer than a request
	problems []string
}

// Clients are clients of AWS, and the nouns' types on them.
type Clients struct {
	DB       *dynamodb.Client
	KMS      *kms.Client
	S3       *s3.Client
	Registry *auth.Registry
	Manager  *byok.Manager
	Files    *files.Manager
	Jobs     *syncjobs.Writer
}

// Over returns clients whose calls go through the HTTP client.
func (env *Environment) Over(client aws.HTTPClient) Clients {
	c, o := env.functionEnvironment(client, slog.New(slog.DiscardHandler)).AWS(), env.Outputs
	db, objects := dynamodb.NewFromConfig(c), s3.NewFromConfig(c)
	return Clients{
		DB: db, KMS: kms.NewFromConfig(c), S3: objects, Registry: auth.NewRegistry(db, o.Access), Manager: byok.NewManager(db, o.Credentials),
		Files: files.NewManager(objects, o.Files), Jobs: syncjobs.NewWriter(db, o.Jobs),
	}
}

// FunctionEnvironment is a function's environment, without a log.
func (env *Environment) FunctionEnvironment() *boot.Environment {
	return env.functionEnvironment(env.plain(), slog.New(slog.DiscardHandler))
}

// functionEnvironment is a function's environment. Its calls go through the client.
func (env *Environment) functionEnvironment(client aws.HTTPClient, log *slog.Logger) *boot.Environment {
	config, o := env.config, env.Outputs
	config.HTTPClient = client
	names := map[string]string{
		"ACCESS_TABLE": o.Access, "CREDENTIALS_TABLE": o.Credentials, "SYNC_JOBS_TABLE": o.Jobs, "CONTROL_TABLE": o.Control,
		"SEALING_KEY_ARN": o.SealingKey, "FILES_BUCKET": o.Files,
	}
	return boot.NewEnvironment(config, log, func(name string) string { return names[name] })
}

var engines = flag.String("engines", "", "play the cases on the real engines too, and compare: all, or main: faults only if they are main ones, once, and once for each kind of call")

// setup is what the Environments of a case have in common.
type setup struct {
	versioning string           // of the bucket
	page       int              // the number of items that a query or scan returns at most; 0 for AWS's own
	listed     int              // the same for listings of S3
	prepared   map[int]prepared // by their number
}

// prepared is an Environment that is prepared so far.
type prepared struct {
	number int
	model  *awsmodel.World
	value  any
}

// Prepared returns what fill returns, when it has stored rows and files. On the model that happens
// once in a case; the next Environments get copies. So ids and times are the same in each.
func Prepared[T any](env *Environment, fill func() T) T {
	if env.OnEngines() {
		return fill()
	}
	env.prepared.number++
	number := env.prepared.number
	s, known := env.setup.prepared[number]
	if !known {
		s.value = fill()
		s.number, s.model = env.prepared.number, env.model
		env.setup.prepared[number] = s
	}
	env.prepared, env.model = s, s.model.Clone()
	cryptotest.SetGlobalRandom(env.t, uint64(s.number)) //nolint:gosec // a small number
	return s.value.(T)                                  //nolint:errcheck // it comes from above
}

// Changed reports whether anything is stored otherwise than Prepared left it. Only the model knows.
func (env *Environment) Changed() bool { return len(env.model.Changes(env.prepared.model)) > 0 }

// inEnvironment calls do in a new Environment, and returns the problems that it notes.
func inEnvironment(t *testing.T, real bool, s *setup, do func(*Environment)) (problems []string) {
	t.Helper()
	run := func(env *Environment) {
		done := make(chan struct{})
		go func() { // Fatalf ends it
			defer close(done)
			env.Clients = env.Over(env.plain())
			env.Tenant = Prepared(env, func() kit.Tenant { return kit.NewTenant(env.TB(), env.Registry) })
			env.Tenant.Registry = env.Registry
			do(env)
		}()
		<-done
		problems = env.problems
	}
	if real {
		env := onEngines(t, s)
		run(env)
		for _, table := range env.tables() { // so the next trial can compare all that is stored
			env.Rows(table).Become(env.t, nil)
		}
		return problems
	}
	synctest.Test(t, func(t *testing.T) { run(onModel(t, s)) })
	return problems
}

func onModel(t *testing.T, s *setup) *Environment {
	e, model := kit.OnModel(s.versioning)
	env := &Environment{t: t, setup: s, Outputs: e.Tables, Versioning: s.versioning, Before: kit.OtherAccess, OldKey: kit.ModelKeys[1], config: e.Config, model: model}
	env.storage = httpFunc(env.apply)
	return env
}

type httpFunc func(*http.Request) (*http.Response, error)

// Do implements aws.HTTPClient.
func (f httpFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

// apply is the model's HTTP client. Each call takes a millisecond of virtual time: code that
// repeats without a pause must meet its deadline.
func (env *Environment) apply(r *http.Request) (*http.Response, error) {
	if err := calls.Wait(r.Context(), time.Millisecond); err != nil {
		return nil, err
	}
	return env.model.Do(r)
}

// shared are what the trials on engines share: a pool of connections, the buckets, a table and
// a key.
var shared = struct {
	client         aws.HTTPClient
	buckets        map[string]string
	before, oldKey string
}{client: awshttp.NewBuildableClient(), buckets: map[string]string{}}

func onEngines(t *testing.T, s *setup) *Environment {
	e := kit.Start(t)
	if shared.buckets[s.versioning] == "" {
		shared.buckets[s.versioning] = e.Bucket(t, s3types.BucketVersioningStatus(s.versioning))
	}
	if shared.before == "" {
		shared.before, shared.oldKey = e.NewTables(t, 1)[0], e.Key(t)
	}
	e.Config.Retryer = calls.Retryer
	e.Tables.Files = shared.buckets[s.versioning]
	return &Environment{
		t: t, setup: s, waited: make(chan struct{}), Versioning: s.versioning, Before: shared.before, OldKey: shared.oldKey, config: e.Config, storage: shared.client,
		Outputs: e.Tables,
	}
}

// Engines are the addresses of the Environment's services. The model answers at any.
func (env *Environment) Engines() awsclients.Engines {
	return env.config.ConfigSources[0].(awsclients.Engines) //nolint:errcheck // the kit has put it there
}

// plain is an HTTP client without faults.
func (env *Environment) plain() aws.HTTPClient { return httpFunc(env.send) }

// send sends a request to storage. It makes the pages of queries, scans and listings smaller.
func (env *Environment) send(r *http.Request) (*http.Response, error) {
	query, target := r.URL.Query(), r.Header.Get("X-Amz-Target")
	switch {
	case env.setup.listed > 0 && (query.Has("versions") || query.Has("list-type")):
		r = r.Clone(r.Context())
		query.Set("max-keys", strconv.Itoa(env.setup.listed))
		r.URL.RawQuery = query.Encode()
	case env.setup.page > 0 && (strings.HasSuffix(target, ".Query") || strings.HasSuffix(target, ".Scan")):
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in) // it is the SDK's own
		in["Limit"] = env.setup.page
		body, _ := json.Marshal(in)
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		own, err := env.config.Credentials.Retrieve(r.Context())
		if err == nil { // engines look at signatures
			err = v4.NewSigner().SignHTTP(r.Context(), own, r, fmt.Sprintf("%x", sha256.Sum256(body)), "dynamodb", env.config.Region, time.Now())
		}
		if err != nil {
			return nil, fmt.Errorf("signing a request again: %w", err)
		}
	}
	return env.storage.Do(r)
}

// OnEngines reports whether the Environment is on real engines.
func (env *Environment) OnEngines() bool { return env.model == nil }

// Now is the time of the Environment.
func (env *Environment) Now() time.Time {
	env.mu.Lock()
	defer env.mu.Unlock()
	return time.Now().Add(env.skipped)
}

// Pause waits in the time of the Environment. On engines it returns at once, and Now is later.
func (env *Environment) Pause(ctx context.Context, d time.Duration) error {
	if !env.OnEngines() {
		return calls.Wait(ctx, d)
	}
	env.mu.Lock()
	defer env.mu.Unlock()
	if env.skipped == 0 {
		close(env.waited)
	}
	env.skipped += max(d, 1)
	return ctx.Err()
}

// Broken notes a problem. kind is "result", "line" or "stored", for what shows
// it, or "calls".
func (env *Environment) Broken(kind, format string, a ...any) {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.problems = append(env.problems, kind+": "+fmt.Sprintf(format, a...))
}

// TB is a test whose failures are noted as problems of the trial: synctest ends a test at
// its first failure.
func (env *Environment) TB() testing.TB { return noting{env.t, env, "result"} }

type noting struct {
	testing.TB

	w    *Environment
	kind string
}

// Helper implements testing.TB.
func (noting) Helper() {}

// Errorf implements testing.TB.
func (n noting) Errorf(format string, a ...any) { n.w.Broken(n.kind, format, a...) }

// Error implements testing.TB.
func (n noting) Error(a ...any) { n.w.Broken(n.kind, "%s", fmt.Sprint(a...)) }

// Fatal implements testing.TB.
func (n noting) Fatal(a ...any) {
	n.Error(a...)
	runtime.Goexit()
}

// Fatalf implements testing.TB.
func (n noting) Fatalf(format string, a ...any) {
	n.Errorf(format, a...)
	runtime.Goexit()
}

// Rows are the rows of a table, such as w.Outputs.Access.
func (env *Environment) Rows(table string) kit.Rows { return kit.Rows{DB: env.DB, Table: table} }

// Bucket is the bucket of files.
func (env *Environment) Bucket() kit.Bucket {
	return kit.Bucket{Client: env.S3, Name: env.Outputs.Files}
}

// tables are the names of the tables by their role.
func (env *Environment) tables() map[string]string {
	o := env.Outputs
	return map[string]string{"before": env.Before, "access": o.Access, "credentials": o.Credentials, "jobs": o.Jobs, "control": o.Control}
}

// resources are the logical ids of the resources by their names.
func (env *Environment) resources() map[string]string {
	o := env.Outputs
	return map[string]string{
		o.Access: "AccessTable", o.Credentials: "CredentialsTable", o.Jobs: "SyncJobsTable", o.Control: "ControlTable", o.SealingKey: "SealingKey", o.Files: "FilesBucket",
	}
}

// Damaged calls ask while a row has a version that this program does not know.
func (env *Environment) Damaged(table string, key kit.Row, ask func()) {
	rows, t := env.Rows(table), env.TB()
	defer rows.Put(t, rows.Get(t, key))
	rows.Set(t, key, "v", kit.Number("9"))
	ask()
}

// Stranger makes another account.
func (env *Environment) Stranger() kit.Tenant { return kit.NewTenant(env.TB(), env.Registry) }

// File looks at a file of the tenant's workspace.
func (env *Environment) File(f ids.File) kit.Objects {
	return env.Bucket().Look(env.TB(), files.Key(env.Tenant.Workspace, f))
}

// dump is all that is stored, in an order of its own.
func (env *Environment) dump() string {
	var lines []string
	for name, table := range env.tables() {
		for _, row := range env.Rows(table).All(env.TB()) {
			text, err := json.Marshal(row)
			kit.Must(env.TB(), err)
			lines = append(lines, name+" "+string(text))
		}
	}
	return comparable(append(lines, fmt.Sprintf("%+v", env.File("file_1"))))
}

// changing is what differs between two runs: ids, hashes, times, and bytes that KMS or a random
// number made.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}|arn:[^"]*|\d{4}-\d\d-\d\dT[^"]*|\d{9,}|[A-Z2-7]{26}|"nonce":[^}]*|[\w+/]{40,}=*`)

func comparable(lines []string) string {
	for i := range lines {
		lines[i] = changing.ReplaceAllString(lines[i], "#")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
