package syncjobs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/infra/test/kit/faults"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// fixture is a writer and a reader of an account's jobs, on a manual clock.
type fixture struct {
	*testing.T
	writer  *syncjobs.Writer
	store   *syncjobs.Store
	db      *dynamodb.Client
	table   string
	faults  *faults.Transport
	account ids.Account
	clock   time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	engines := kit.Start(t)
	f := &fixture{
		T: t, table: engines.Tables.Jobs, faults: faults.Wrap(engines.Config.HTTPClient),
		account: ids.New[ids.Account](), clock: time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC),
	}
	engines.Config.HTTPClient = f.faults
	f.db = dynamodb.NewFromConfig(engines.Config)
	f.writer = syncjobs.NewWriter(f.db, f.table).At(func() time.Time { return f.clock })
	f.store = syncjobs.NewStore(f.db, f.table)
	return f
}

func (f *fixture) newJob() ids.Job {
	f.Helper()
	id, err := f.writer.Create(f.Context(), f.account)
	kit.Must(f, err)
	return id
}

func (f *fixture) find(id ids.Job, account ids.Account) (syncjobs.Job, error) {
	f.Helper()
	found, err := f.store.Find(f.Context(), id)
	kit.Must(f, err)
	return found.For(account)
}

func (f *fixture) read(id ids.Job) syncjobs.Job {
	f.Helper()
	job, err := f.find(id, f.account)
	kit.Must(f, err)
	return job
}

// put stores a finished row of the job, with one attribute changed.
func (f *fixture) put(id ids.Job, attribute string, value types.AttributeValue) {
	f.Helper()
	row := kit.Row{
		"pk": kit.Text("job#" + string(id)), "v": kit.Number("1"), "account": kit.Text(string(f.account)), "status": kit.Text("succeeded"),
		"created_at": kit.Number("1760000001"), "started_at": kit.Number("1760000002"), "finished_at": kit.Number("1760000003"),
		"synced_groups": kit.Number("4"), "deleted_groups": kit.Number("5"), "error_message": kit.Text("left over"),
	}
	if row[attribute] = value; value == nil {
		delete(row, attribute)
	}
	kit.Rows{DB: f.db, Table: f.table}.Put(f, row)
}

func TestOnlyLegalStepsAreTaken(t *testing.T) {
	f := newFixture(t)
	steps := map[string]func(ids.Account, ids.Job) error{
		"start":   func(a ids.Account, id ids.Job) error { return f.writer.Start(t.Context(), a, id) },
		"succeed": func(a ids.Account, id ids.Job) error { return f.writer.Succeed(t.Context(), a, id, 3, 0) },
		"fail":    func(a ids.Account, id ids.Job) error { return f.writer.Fail(t.Context(), a, id, "unreachable") },
	}
	begin, finish, created := f.clock.Add(time.Minute), f.clock.Add(2*time.Minute), f.clock
	three, zero, message := int64(3), int64(0), "unreachable"
	legal := map[string]syncjobs.Job{
		"":              {Status: syncjobs.Queued},
		"start":         {Status: syncjobs.Running, StartedAt: &begin},
		"fail":          {Status: syncjobs.Failed, FinishedAt: &begin, ErrorMessage: &message},
		"start succeed": {Status: syncjobs.Succeeded, StartedAt: &begin, FinishedAt: &finish, SyncedGroups: &three, DeletedGroups: &zero},
		"start fail":    {Status: syncjobs.Failed, StartedAt: &begin, FinishedAt: &finish, ErrorMessage: &message},
	}
	for path, want := range legal {
		f.clock = created
		id := f.newJob()
		for name := range strings.FieldsSeq(path) {
			f.clock = f.clock.Add(time.Minute)
			if err := steps[name](f.account, id); err != nil {
				t.Fatalf("%s: %s: %v", path, name, err)
			}
		}
		for name, take := range steps {
			if _, ok := legal[strings.TrimSpace(path+" "+name)]; !ok {
				if err := take(f.account, id); !errors.Is(err, syncjobs.ErrState) {
					t.Errorf("%s, then %s: %v", path, name, err)
				}
			}
			if err := take(ids.New[ids.Account](), id); !errors.Is(err, syncjobs.ErrState) {
				t.Errorf("%s, then %s for another account: %v", path, name, err)
			}
		}
		want.ID, want.CreatedAt = id, created
		if diff := cmp.Diff(want, f.read(id)); diff != "" {
			t.Errorf("%s, after illegal steps (-want +got):\n%s", path, diff)
		}
	}
}

// A job has only the fields of its state, even if the row holds more.
func TestFieldsOfAnotherStateAreLeftOut(t *testing.T) {
	f := newFixture(t)
	for status, want := range map[syncjobs.Status][5]bool{ // started, finished, synced, deleted, message
		syncjobs.Queued:    {},
		syncjobs.Running:   {true},
		syncjobs.Succeeded: {true, true, true, true, false},
		syncjobs.Failed:    {true, true, false, false, true},
	} {
		id := ids.New[ids.Job]()
		f.put(id, "status", kit.Text(string(status)))
		j := f.read(id)
		got := [5]bool{j.StartedAt != nil, j.FinishedAt != nil, j.SyncedGroups != nil, j.DeletedGroups != nil, j.ErrorMessage != nil}
		if got != want {
			t.Errorf("%s: %v, want %v", status, got, want)
		}
	}
}

// The tests of the operator's command list jobs of each kind.
func TestAListThatFailsIsAnError(t *testing.T) {
	f := newFixture(t)
	f.faults.Inject(faults.Rule{Operation: "Scan", Fault: faults.Refuse()})
	if jobs, err := syncjobs.NewLister(f.db, f.table).List(t.Context(), f.account); err == nil {
		t.Errorf("with DynamoDB out of reach: %+v", jobs)
	}
}

func TestInvalidStepsChangeNothing(t *testing.T) {
	f := newFixture(t)
	id := f.newJob()
	kit.Must(t, f.writer.Start(t.Context(), f.account, id))
	before := f.read(id)
	for name, err := range map[string]error{
		"negative synced":  f.writer.Succeed(t.Context(), f.account, id, -1, 0),
		"negative deleted": f.writer.Succeed(t.Context(), f.account, id, 0, -1),
		"no message":       f.writer.Fail(t.Context(), f.account, id, ""),
		"long message":     f.writer.Fail(t.Context(), f.account, id, strings.Repeat("x", 1001)),
		"invalid UTF-8":    f.writer.Fail(t.Context(), f.account, id, "\xff"),
	} {
		if !errors.Is(err, syncjobs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff(before, f.read(id)); diff != "" {
		t.Errorf("changed (-before +after):\n%s", diff)
	}
	if _, err := f.writer.Create(t.Context(), ""); err == nil {
		t.Error("a job was created for no account")
	}
	message := strings.Repeat("é", 1000) // a thousand code points
	kit.Must(t, f.writer.Fail(t.Context(), f.account, id, message))
	if got := f.read(id).ErrorMessage; got == nil || *got != message {
		t.Errorf("the message is %v", got)
	}
}

func TestADamagedRowIsAnError(t *testing.T) {
	f := newFixture(t)
	for attribute, value := range map[string]types.AttributeValue{
		"account": kit.Number("9"), // it decodes into a string
		"v":       kit.Number("2"), "status": kit.Text("paused"), "started_at": kit.Text("yesterday"),
	} {
		f.mustBeDamaged(attribute, value)
	}
	for _, attribute := range []string{"status", "created_at"} {
		f.mustBeDamaged(attribute, nil)
	}
	for _, attribute := range []string{"created_at", "started_at", "finished_at"} {
		// The last second of 1999, the first of 10000, and a time in milliseconds.
		for _, at := range []string{"946684799", "253402300800", "1760000000000", "-1", "0"} {
			f.mustBeDamaged(attribute, kit.Number(at))
		}
	}
	for _, attribute := range []string{"synced_groups", "deleted_groups"} {
		f.mustBeDamaged(attribute, kit.Number("-1"))
	}
	if job, err := f.find(ids.New[ids.Job](), ""); !errors.Is(err, syncjobs.ErrNotFound) {
		t.Errorf("no job of no account: %+v, %v", job, err)
	}
}

// A row may lack any other value, and the first and the last time are valid.
func TestMissingValuesAreNil(t *testing.T) {
	f := newFixture(t)
	for _, attribute := range []string{"started_at", "finished_at", "synced_groups", "deleted_groups"} {
		id := ids.New[ids.Job]()
		f.put(id, attribute, nil)
		j := f.read(id)
		got := map[string]bool{
			"started_at": j.StartedAt == nil, "finished_at": j.FinishedAt == nil, "synced_groups": j.SyncedGroups == nil, "deleted_groups": j.DeletedGroups == nil,
		}
		for name, isNil := range got {
			if isNil != (name == attribute) {
				t.Errorf("without %s, %s is nil: %t", attribute, name, isNil)
			}
		}
	}
	for _, at := range []string{"946684800", "253402300799"} {
		id := ids.New[ids.Job]()
		f.put(id, "created_at", kit.Number(at))
		if got := fmt.Sprint(f.read(id).CreatedAt.Unix()); got != at {
			t.Errorf("created at %s, want %s", got, at)
		}
	}
}

// mustBeDamaged checks that a row with this value is an error for its account, and not
// found for others. If the value is nil, the row lacks it.
func (f *fixture) mustBeDamaged(attribute string, value types.AttributeValue) {
	f.Helper()
	id := ids.New[ids.Job]()
	f.put(id, attribute, value)
	if found, err := f.store.Find(f.Context(), id); err != nil || found.Damage() == nil {
		f.Errorf("%s: found %+v, %v", attribute, found, err)
	}
	if job, err := f.find(id, f.account); err == nil || errors.Is(err, syncjobs.ErrNotFound) != (attribute == "account") {
		f.Errorf("%s: %+v, %v", attribute, job, err)
	}
	if job, err := f.find(id, ids.New[ids.Account]()); !errors.Is(err, syncjobs.ErrNotFound) {
		f.Errorf("%s: to another account %+v, %v", attribute, job, err)
	}
}
