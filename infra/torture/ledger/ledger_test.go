package ledger_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/caller"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/service"
	"signalbox.dev/infra/torture/world"
	"signalbox.dev/shared/files"
)

// fixture is a client with a ledger, and hands that can reach into storage.
type fixture struct {
	*testing.T
	stack   *testkit.Stack
	client  *caller.Client
	account world.Account
	apiKey  string
	ledger  *ledger.Ledger
	orders  int
}

// TestAuditsFindDamage: what must never happen is made to happen, behind the
// service's back, and found.
func TestAuditsFindDamage(t *testing.T) {
	s, err := service.Start(t.Context(), service.Config{Root: "../../..", State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for want, damage := range map[string]func(*fixture){
		"":                         func(f *fixture) { f.created() },
		"acknowledged and is lost": func(f *fixture) { f.remove(f.created()) },
		"refused and is stored": func(f *fixture) {
			o := f.order()
			f.ask(o)
			o.Answered(caller.Answer{Status: http.StatusTooManyRequests})
		},
		"is stored 2 times": func(f *fixture) {
			o := f.order()
			o.Answered(f.ask(o))
			f.ask(o)
		},
		"never asked for": func(f *fixture) {
			f.ask(&ledger.Order{Name: "stray", Workspace: f.account.Workspaces[0], Provider: "openai"})
		},
		"as it should be, was refused": func(f *fixture) { f.order().Answered(caller.Answer{Status: http.StatusBadRequest}) },
		"is stored otherwise than":     func(f *fixture) { f.set(f.created(), "sort_order", &types.AttributeValueMemberN{Value: "9"}) },
		"share position": func(f *fixture) {
			f.created()
			f.set(f.created(), "sort_order", &types.AttributeValueMemberN{Value: "0"})
		},
		"does not open": func(f *fixture) {
			first, second := f.created(), f.created()
			f.set(second, "seal", f.get(first)["seal"])
		},
		"1 versions of it are left": func(f *fixture) { f.stored().Answered(caller.Answer{Status: http.StatusOK}) },
		"deleted twice": func(f *fixture) {
			file := f.stored()
			file.Answered(caller.Answer{Status: http.StatusOK})
			file.Answered(caller.Answer{Status: http.StatusOK})
		},
		"not there as it was": func(f *fixture) {
			file := f.stored()
			key := files.Key(file.Workspace, file.ID)
			_, err := f.stack.S3.DeleteObject(f.Context(), &s3.DeleteObjectInput{Bucket: &f.stack.Files, Key: &key})
			f.must(err)
		},
	} {
		t.Run(want, func(t *testing.T) {
			f := newFixture(t, s)
			defer f.sweep()
			damage(f)
			report, err := f.ledger.Audit(t.Context(), f.stack)
			f.must(err)
			found := strings.Join(report.Broken, "\n")
			if (want == "") != (found == "") || !strings.Contains(found, want) {
				t.Errorf("found %q", found)
			}
		})
	}
}

func newFixture(t *testing.T, s *service.Service) *fixture {
	f := &fixture{T: t, stack: s.Stack(), client: caller.New(s.BaseURL(), 1)}
	var err error
	f.account, err = world.NewAccount(t.Context(), f.stack, 1)
	f.must(err)
	keys, err := f.account.Keys(t.Context(), f.stack, 1)
	f.must(err)
	f.apiKey, f.ledger = keys[0].Token, ledger.New(f.account.ID)
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) order() *ledger.Order {
	f.orders++
	return f.ledger.Order(ledger.Order{
		Name: fmt.Sprintf("order-%d", f.orders), Workspace: f.account.Workspaces[0], Provider: "openai", APIKey: f.apiKey,
	})
}

func (f *fixture) ask(o *ledger.Order) caller.Answer {
	f.Helper()
	a, err := f.client.Create(f.Context(), f.apiKey, "", o.Body())
	f.must(err)
	if a.Status != http.StatusCreated {
		f.Fatalf("%d %s", a.Status, a.Body)
	}
	return a
}

// created is the row of an order that was accepted.
func (f *fixture) created() map[string]types.AttributeValue {
	f.Helper()
	o := f.order()
	a := f.ask(o)
	o.Answered(a)
	c, err := a.Credential()
	f.must(err)
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "workspace#" + c.Workspace},
		"sk": &types.AttributeValueMemberS{Value: "credential#" + c.ID},
	}
}

func (f *fixture) stored() *ledger.File {
	f.Helper()
	all, err := f.account.Files(f.Context(), f.stack, f.ledger, 1)
	f.must(err)
	return all[0]
}

func (f *fixture) get(row map[string]types.AttributeValue) map[string]types.AttributeValue {
	f.Helper()
	out, err := f.stack.DynamoDB.GetItem(f.Context(), &dynamodb.GetItemInput{TableName: &f.stack.Credentials, Key: row, ConsistentRead: aws.Bool(true)})
	f.must(err)
	return out.Item
}

func (f *fixture) set(row map[string]types.AttributeValue, name string, value types.AttributeValue) {
	f.Helper()
	item := f.get(row)
	item[name] = value
	_, err := f.stack.DynamoDB.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.stack.Credentials, Item: item})
	f.must(err)
}

func (f *fixture) remove(row map[string]types.AttributeValue) {
	f.Helper()
	_, err := f.stack.DynamoDB.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &f.stack.Credentials, Key: row})
	f.must(err)
}

// sweep leaves nothing for the next: an audit looks at the whole table.
func (f *fixture) sweep() {
	f.Helper()
	out, err := f.stack.DynamoDB.Scan(context.Background(), &dynamodb.ScanInput{TableName: &f.stack.Credentials, ConsistentRead: aws.Bool(true)})
	f.must(err)
	for _, item := range out.Items {
		f.remove(map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]})
	}
}
