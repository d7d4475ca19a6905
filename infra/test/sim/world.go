package sim

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/api"
	"signalbox.dev/shared/auth"
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
	// Clock is the time by which the services' clocks are ahead of the functions'
	// clocks.
	Clock time.Duration
	// Page is the number of versions that S3 lists at once; 0 means the requested
	// number.
	Page int
}

// Reaches names states that some schedule of the scenario must reach: the result of an actor,
// such as "A: 201", or a state that the judge notes. If none does, the scenario does not
// show what it was written for, and fails.
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
	actors    []*actor
	made      int
	names     map[string]string
	history   []event
	exchanges []*exchange
	checks    []func()  // after each step
	asked     *instance // of requests without a fault
	operation api.Operation

	// What the judges know, each in the file of its judge.
	credentials credentialJudge
	files       fileJudge
	registry    registryJudge

	earliest int
	finally  []func() // when all is settled
	problems []string
	reached  map[string]bool
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

func newWorld(t testing.TB, s Scenario) *World {
	t.Helper()
	w := &World{
		Scenario: s, t: t, began: time.Now(), names: map[string]string{}, reached: map[string]bool{},
		credentials: newCredentialJudge(), files: fileJudge{limited: map[string]bool{}},
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

// must ends a run that cannot be set up.
func (w *World) must(err error) {
	w.t.Helper()
	kit.Must(w.t, err)
}

// Wait lets virtual time pass before the run.
func (w *World) Wait(d time.Duration) { time.Sleep(d) }

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
	w.showed(w.past(), turnedOff("existence of key "+hash[:12]))
	return hash
}

// DeletedWorkspace deletes a workspace before all others begin.
func (w *World) DeletedWorkspace(workspace ids.Workspace) {
	w.Tenant.DeleteWorkspace(w.t, workspace)
	w.showed(w.past(), turnedOff(workspaceObject(workspace)))
}

// past is an actor that ended before the run.
func (w *World) past() *actor {
	a := w.newActor("before")
	w.actBefore(a)
	return a
}

// Expire lets the records of all earlier requests under the idempotency key expire;
// they stay stored, as DynamoDB may keep them.
func (w *World) Expire(idempotency string) {
	rows := w.Rows(controlTable)
	for _, row := range rows.All(w.t) {
		if row["fingerprint"] != nil {
			rows.Set(w.t, row, "exp", kit.Number("1"))
		}
	}
	w.showed(w.past(), sets("idempotency key "+w.Tenant.Management+idempotency, "expired", func(once) once { return once{} }))
}
