package sim

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/boot"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/files"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// Scenario is a situation and the actors that act in it at the same time.
type Scenario struct {
	Name string
	// Assemble is the assemble of the function's main.go.
	Assemble Assemble
	// Versioning is the versioning of the bucket: "", "Enabled" or "Suspended".
	Versioning string
	// Set stores the first rows and files, and makes the actors.
	Set func(*World)
	// Calls are the calls of a single request without a fault. RoundTrips is how many
	// of these calls come one after the other. Neither is checked if Calls is nil.
	Calls      []string
	RoundTrips int
	wanted     []string // see Reaches

	// Frozen means that all connections are lost when the actors begin, as if Lambda
	// had the process frozen for an hour.
	Frozen bool
	// Page is the number of versions that S3 lists at once; 0 means the requested
	// number.
	Page int
}

// Assemble makes a function's operation, as in its main.go.
type Assemble func(*boot.Environment) (api.Verifier, *slog.Logger, api.Operation)

// Reaches names states that some schedule of the scenario must reach: the result of an actor,
// such as "A: 201", or a state that the judge notes. If none does, the scenario
// fails: it does not show its point.
func (s Scenario) Reaches(states ...string) Scenario {
	s.wanted = append(slices.Clone(s.wanted), states...)
	return s
}

// World is shared by the actors of one schedule.
type World struct {
	Scenario
	Tenant kit.Tenant
	// Direct are clients without faults.
	Direct Clients

	t         testing.TB
	applying  sync.Mutex // guards the model: a request before the run makes parallel calls
	model     *awsmodel.World
	began     time.Time
	names     map[string]string // of ids and hashes
	operation api.Operation     // the function's
	asked     *instance         // of requests without a fault

	actors       []*actor // of the run, without repetitions
	made         int      // number of all actors
	earliest     int      // number of the actors before the run
	exchanges    []*exchange
	performances []*performance
	facts        []fact

	// What must hold: eachStep after each step of the run, whenEnded when all actors have
	// ended, finally when the requests have been repeated.
	eachStep, whenEnded, finally []func()
	credentials                  credentialJudge
	limited                      map[string]bool // API keys whose rate is judged
	registry                     registryJudge

	problems []string // breaches of the contract
	reached  map[string]bool
}

func newWorld(t testing.TB, s Scenario) *World {
	t.Helper()
	w := &World{
		Scenario: s, t: t, began: time.Now(), names: map[string]string{}, reached: map[string]bool{},
		credentials: newCredentialJudge(), limited: map[string]bool{},
		model: awsmodel.New(awsmodel.Config{
			Tables: []string{accessTable, credentialsTable, jobsTable, controlTable},
			Bucket: bucket, Versioning: s.Versioning, Keys: []string{keyARN},
		}),
	}
	w.Direct = newClients(environment(w.newActor("direct"), slog.New(slog.DiscardHandler)).AWS())
	w.Tenant = kit.NewTenant(t, w.Direct.Registry)
	w.Name(string(w.Tenant.ID), "account")
	w.Name(keyARN[len(keyARN)-36:], "sealing")
	w.Name(string(w.Tenant.Workspace), "workspace")
	w.Name(hashOf(w.Tenant.Management), "management")
	return w
}

// The names in the functions' environment.
const (
	accessTable, credentialsTable, jobsTable, controlTable = "access", "credentials", "sync-jobs", "control"
	bucket                                                 = "files"
	keyARN                                                 = "arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000001"
)

func variable(name string) string {
	return map[string]string{
		"ACCESS_TABLE": accessTable, "CREDENTIALS_TABLE": credentialsTable, "SYNC_JOBS_TABLE": jobsTable, "CONTROL_TABLE": controlTable,
		"SEALING_KEY_ARN": keyARN, "FILES_BUCKET": bucket,
	}[name]
}

// environment is a function's environment. Its calls pass through the client.
func environment(client aws.HTTPClient, log *slog.Logger) *boot.Environment {
	return boot.NewEnvironment(aws.Config{
		Region: "us-east-1", HTTPClient: client,
		Credentials: credentials.NewStaticCredentialsProvider("an-id", "a-secret", ""),
	}, log, variable)
}

// Clients are the clients of an actor.
type Clients struct {
	DB       *dynamodb.Client
	KMS      *kms.Client
	S3       *s3.Client
	Registry *auth.Registry
	Manager  *byok.Manager
	Files    *files.Manager
	Jobs     *syncjobs.Writer
}

func newClients(config aws.Config) Clients {
	db, objects := dynamodb.NewFromConfig(config), s3.NewFromConfig(config)
	return Clients{
		DB: db, KMS: kms.NewFromConfig(config), S3: objects,
		Registry: auth.NewRegistry(db, accessTable), Manager: byok.NewManager(db, credentialsTable),
		Files: files.NewManager(objects, bucket), Jobs: syncjobs.NewWriter(db, jobsTable),
	}
}

// check checks the state after a step.
func (w *World) check() {
	for _, check := range w.eachStep {
		check()
	}
}

func (w *World) problem(format string, a ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, a...))
}

// readable replaces hashes and ids in a text by their names.
func (w *World) readable(text string) string {
	for long, name := range w.names {
		text = strings.ReplaceAll(text, long, name)
		if len(long) == 64 {
			text = strings.ReplaceAll(text, long[:12], name)
		}
	}
	return text
}

func (w *World) must(err error) {
	w.t.Helper()
	kit.Must(w.t, err)
}

// TB is the test of the run. Its failures are breaches of the contract.
func (w *World) TB() testing.TB { return noting{TB: w.t, w: w} }

// noting notes a test's failures as problems of the run.
type noting struct {
	testing.TB

	w   *World
	who string
}

// Helper implements testing.TB.
func (noting) Helper() {}

// Errorf implements testing.TB.
func (n noting) Errorf(format string, a ...any) {
	n.w.problem("%s%s", n.who, fmt.Sprintf(format, a...))
}

// Fatalf implements testing.TB.
func (n noting) Fatalf(format string, a ...any) {
	n.Errorf(format, a...)
	runtime.Goexit()
}

// Name gives an id a name in traces.
func (w *World) Name(id, name string) { w.names[id] = name }

func hashOf(token string) string { return string(auth.HashKey(token)) }

// Rows are the rows of a table: access, credentials, sync-jobs or control.
func (w *World) Rows(table string) kit.Rows { return kit.Rows{DB: w.Direct.DB, Table: table} }

// NewWorkspace makes another workspace of the tenant.
func (w *World) NewWorkspace(name string) ids.Workspace {
	id := w.Tenant.NewWorkspace(w.t)
	w.Name(string(id), name)
	return id
}

// StandardKey makes a standard key, bound to the workspace unless that is "".
func (w *World) StandardKey(bound ids.Workspace) string {
	token := w.Tenant.StandardKey(w.t, bound)
	w.Name(hashOf(token), "standard")
	return token
}

// UnknownKey is an API key that is not stored.
func (w *World) UnknownKey() string {
	const token = kit.Marker + "unknown"
	w.Name(hashOf(token), "unknown")
	w.showed(w.past(), turnedOff(keyObject(token)))
	return token
}

// UnknownHash is the hash of an API key that is not stored.
func (w *World) UnknownHash() string {
	hash := hashOf("nobody's")
	w.Name(hash, "nobody's")
	w.showed(w.past(), turnedOff(existence(hash)))
	return hash
}

// DeletedWorkspace deletes a workspace before all others begin.
func (w *World) DeletedWorkspace(workspace ids.Workspace) {
	w.Tenant.DeleteWorkspace(w.t, workspace)
	w.showed(w.past(), turnedOff(workspaceObject(workspace)))
}
