package syncjobs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/syncjobs"
)

// desk is a worker and a reader of one account's jobs, on a clock of their own.
type desk struct {
	*testing.T
	*syncjobs.Writer
	store   *syncjobs.Store
	db      *dynamodb.Client
	table   string
	broken  *faults.Transport
	account ids.Account
	clock   time.Time
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	engines := testkit.Start(t)
	d := &desk{T: t, table: engines.Tables.SyncJobs, db: dynamodb.NewFromConfig(engines.Config), broken: faults.Wrap(engines.Config.HTTPClient),
		account: ids.New[ids.Account](), clock: time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)}
	config := engines.Config
	config.HTTPClient = d.broken
	client := dynamodb.NewFromConfig(config)
	d.Writer = syncjobs.NewWriter(client, d.table).At(func() time.Time { return d.clock })
	d.store = syncjobs.NewStore(client, d.table)
	return d
}

func (d *desk) create() ids.Job {
	d.Helper()
	id, err := d.Create(d.Context(), d.account)
	if err != nil {
		d.Fatal(err)
	}
	return id
}

func (d *desk) read(id ids.Job) syncjobs.Job {
	d.Helper()
	found, err := d.store.Find(d.Context(), id)
	if err != nil {
		d.Fatal(err)
	}
	job, err := found.For(d.account)
	if err != nil {
		d.Fatal(err)
	}
	return job
}

// step is one thing a worker may do to a job.
type step struct {
	name string
	to   syncjobs.Status
	do   func(d *desk, account ids.Account, id ids.Job) error
}

func steps() []step {
	return []step{
		{"start", syncjobs.Running, func(d *desk, a ids.Account, id ids.Job) error { return d.Start(d.Context(), a, id) }},
		{"succeed", syncjobs.Succeeded, func(d *desk, a ids.Account, id ids.Job) error { return d.Succeed(d.Context(), a, id, 3, 0) }},
		{"fail", syncjobs.Failed, func(d *desk, a ids.Account, id ids.Job) error {
			return d.Fail(d.Context(), a, id, "directory_unreachable")
		}},
	}
}

func TestOnlyLegalStepsAreTaken(t *testing.T) {
	d := newDesk(t)
	begin, finish, created := d.clock.Add(time.Minute), d.clock.Add(2*time.Minute), d.clock
	three, zero, message := int64(3), int64(0), "directory_unreachable"
	legal := map[string]syncjobs.Job{
		"":              {Status: syncjobs.Queued},
		"start":         {Status: syncjobs.Running, StartedAt: &begin},
		"fail":          {Status: syncjobs.Failed, FinishedAt: &begin, ErrorMessage: &message},
		"start succeed": {Status: syncjobs.Succeeded, StartedAt: &begin, FinishedAt: &finish, SyncedGroups: &three, DeletedGroups: &zero},
		"start fail":    {Status: syncjobs.Failed, StartedAt: &begin, FinishedAt: &finish, ErrorMessage: &message},
	}
	for path, want := range legal {
		d.clock = created
		id := d.create()
		for name := range strings.FieldsSeq(path) {
			d.clock = d.clock.Add(time.Minute)
			for _, s := range steps() {
				if s.name == name {
					if err := s.do(d, d.account, id); err != nil {
						t.Fatalf("%s: %s: %v", path, name, err)
					}
				}
			}
		}
		want.ID, want.CreatedAt = id, created
		if diff := cmp.Diff(want, d.read(id)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		for _, s := range steps() {
			if _, ok := legal[strings.TrimSpace(path+" "+s.name)]; ok {
				continue
			}
			if err := s.do(d, d.account, id); !errors.Is(err, syncjobs.ErrState) {
				t.Errorf("%s, then %s: %v", path, s.name, err)
			}
		}
		if diff := cmp.Diff(want, d.read(id)); diff != "" {
			t.Errorf("%s, after illegal steps (-want +got):\n%s", path, diff)
		}
	}
}

func TestAnotherAccountsJobDoesNotExist(t *testing.T) {
	d := newDesk(t)
	id, foreign := d.create(), ids.New[ids.Account]()
	for _, s := range steps() {
		if err := s.do(d, foreign, id); !errors.Is(err, syncjobs.ErrState) {
			t.Errorf("%s: %v", s.name, err)
		}
		if err := s.do(d, d.account, ids.New[ids.Job]()); !errors.Is(err, syncjobs.ErrState) {
			t.Errorf("%s of no job: %v", s.name, err)
		}
	}
	for name, lookUp := range map[string]struct {
		id      ids.Job
		account ids.Account
	}{"foreign": {id, foreign}, "unknown": {ids.New[ids.Job](), d.account}, "unknown, for no account": {ids.New[ids.Job](), ""}} {
		found, err := d.store.Find(t.Context(), lookUp.id)
		if err != nil {
			t.Fatal(err)
		}
		if job, err := found.For(lookUp.account); !errors.Is(err, syncjobs.ErrNotFound) || job != (syncjobs.Job{}) {
			t.Errorf("%s: %+v, %v", name, job, err)
		}
	}
}

// A job's fields agree with its state on the way out, whatever the row holds.
func TestWhatTheStateDoesNotCarryIsNotTold(t *testing.T) {
	d := newDesk(t)
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	for status, want := range map[syncjobs.Status][5]bool{ // started, finished, synced, deleted, message
		syncjobs.Queued:    {},
		syncjobs.Running:   {true},
		syncjobs.Succeeded: {true, true, true, true, false},
		syncjobs.Failed:    {true, true, false, false, true},
		"paused":           {},
	} {
		id := ids.New[ids.Job]()
		_, err := d.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &d.table, Item: map[string]types.AttributeValue{
			"pk": text("job#" + string(id)), "v": n("1"), "account": text(string(d.account)), "status": text(string(status)),
			"created_at": n("1"), "started_at": n("2"), "finished_at": n("3"),
			"synced_groups": n("4"), "deleted_groups": n("5"), "error_message": text("left over"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		found, err := d.store.Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		j, err := found.For(d.account)
		if status == "paused" {
			if err == nil || errors.Is(err, syncjobs.ErrNotFound) {
				t.Errorf("a job of an unknown status: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := [5]bool{j.StartedAt != nil, j.FinishedAt != nil, j.SyncedGroups != nil, j.DeletedGroups != nil, j.ErrorMessage != nil}
		if got != want {
			t.Errorf("%s: %v, want %v", status, got, want)
		}
	}
}

// The list has every job of the account and of no other, as Find reads it.
func TestJobsAreListed(t *testing.T) {
	d, other := newDesk(t), newDesk(t)
	other.create()
	lister := syncjobs.NewLister(d.db, d.table)
	list := func(account ids.Account) []syncjobs.Listed {
		t.Helper()
		jobs, err := lister.List(t.Context(), account)
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	if got := list(d.account); len(got) != 0 {
		t.Errorf("an account without jobs has %+v", got)
	}
	first := d.create()
	d.clock = d.clock.Add(time.Second)
	second := d.create()
	if err := d.Start(t.Context(), d.account, first); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]syncjobs.Listed{{Job: d.read(first)}, {Job: d.read(second)}}, list(d.account)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	for attribute, value := range map[string]types.AttributeValue{
		"status": &types.AttributeValueMemberS{Value: "paused"}, "v": &types.AttributeValueMemberS{Value: "one"},
	} {
		_, err := d.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &d.table, Item: map[string]types.AttributeValue{
			"pk":      &types.AttributeValueMemberS{Value: "job#" + string(second)},
			"account": &types.AttributeValueMemberS{Value: string(d.account)}, attribute: value,
		}})
		if err != nil {
			t.Fatal(err)
		}
		broken := list(d.account)
		if len(broken) != 2 || broken[0].ID != second || broken[0].Fault == nil || broken[1].Fault != nil {
			t.Errorf("with a bad %s: %+v", attribute, broken)
		}
	}
	d.broken.Inject(faults.Rule{Operation: "Scan", Fault: faults.Refuse()})
	config := d.db.Options().Copy()
	config.HTTPClient = d.broken
	if jobs, err := syncjobs.NewLister(dynamodb.New(config), d.table).List(t.Context(), d.account); err == nil {
		t.Errorf("listed %+v", jobs)
	}
}

func TestBadStepsChangeNothing(t *testing.T) {
	d := newDesk(t)
	id := d.create()
	if err := d.Start(t.Context(), d.account, id); err != nil {
		t.Fatal(err)
	}
	before := d.read(id)
	for name, err := range map[string]error{
		"negative synced":  d.Succeed(t.Context(), d.account, id, -1, 0),
		"negative deleted": d.Succeed(t.Context(), d.account, id, 0, -1),
		"no message":       d.Fail(t.Context(), d.account, id, ""),
		"long message":     d.Fail(t.Context(), d.account, id, strings.Repeat("x", 1001)),
		"mangled message":  d.Fail(t.Context(), d.account, id, "\xff"),
	} {
		if err == nil || errors.Is(err, syncjobs.ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff(before, d.read(id)); diff != "" {
		t.Errorf("changed (-before +after):\n%s", diff)
	}
	if _, err := d.Create(t.Context(), ""); err == nil {
		t.Error("a job was created for no account")
	}
}

func TestTheLongestMessageIsCountedInCodePoints(t *testing.T) {
	d := newDesk(t)
	id, message := d.create(), strings.Repeat("é", 1000)
	if err := d.Fail(t.Context(), d.account, id, message); err != nil {
		t.Fatal(err)
	}
	if got := d.read(id).ErrorMessage; got == nil || *got != message {
		t.Errorf("it is read as %v", got)
	}
}

func TestALostAnswerCreatesOneJob(t *testing.T) {
	d := newDesk(t)
	d.broken.Inject(faults.Rule{Operation: "PutItem", Attempt: 1, Fault: faults.LoseAnswer()})
	id := d.create()
	if got := d.read(id).Status; got != syncjobs.Queued {
		t.Errorf("the job is %s", got)
	}
	// The second attempt writes nothing over what the first one left.
	for _, c := range d.broken.Calls() {
		if c.Operation == "PutItem" && c.Input["ConditionExpression"] != "attribute_not_exists(pk)" {
			t.Errorf("attempt %d puts the job on condition %v", c.Attempt, c.Input["ConditionExpression"])
		}
	}
}

func TestWhatCannotBeWrittenIsNotSaidToBe(t *testing.T) {
	d := newDesk(t)
	job := d.create()
	for _, operation := range []string{"PutItem", "UpdateItem"} {
		d.broken.Inject(faults.Rule{Operation: operation, Fault: faults.Refuse()})
	}
	if id, err := d.Create(t.Context(), d.account); err == nil {
		t.Errorf("created %s", id)
	}
	if err := d.Start(t.Context(), d.account, job); err == nil || errors.Is(err, syncjobs.ErrState) {
		t.Errorf("started: %v", err)
	}
	if got := d.read(job).Status; got != syncjobs.Queued {
		t.Errorf("the job is %s", got)
	}
}

func TestARowOfAnotherShapeIsNoJob(t *testing.T) {
	d := newDesk(t)
	for attribute, value := range map[string]types.AttributeValue{
		"account":    &types.AttributeValueMemberN{Value: "9"}, // which decodes into a string
		"v":          &types.AttributeValueMemberN{Value: "2"},
		"status":     &types.AttributeValueMemberS{Value: "paused"},
		"started_at": &types.AttributeValueMemberS{Value: "yesterday"},
	} {
		id := d.create()
		_, err := d.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &d.table, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "job#" + string(id)}},
			UpdateExpression: aws.String("SET #a = :value"), ConditionExpression: aws.String("attribute_exists(pk)"),
			ExpressionAttributeNames:  map[string]string{"#a": attribute},
			ExpressionAttributeValues: map[string]types.AttributeValue{":value": value},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // attributes are decoded in any order, and no more of them after the bad one
			found, err := d.store.Find(t.Context(), id)
			if err != nil || found.Fault() == nil {
				t.Fatalf("%s: found %+v, %v", attribute, found, err)
			}
			if job, err := found.For(d.account); err == nil || errors.Is(err, syncjobs.ErrNotFound) != (attribute == "account") {
				t.Fatalf("%s: %+v, %v", attribute, job, err)
			}
			if job, err := found.For(ids.New[ids.Account]()); !errors.Is(err, syncjobs.ErrNotFound) {
				t.Fatalf("%s: to another account %+v, %v", attribute, job, err)
			}
		}
	}
}
