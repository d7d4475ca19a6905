package ledger_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/service"
)

// item is an item of the credentials table.
type item = map[string]types.AttributeValue

// fixture is an account with a ledger, in a running service.
type fixture struct {
	t       *testing.T
	stack   *testkit.Stack
	client  *service.Client
	account service.Account
	apiKey  string
	ledger  *ledger.Ledger
	orders  int
}

// TestAuditsFindDamage damages storage, or gives the ledger false responses, and
// expects the audit to report it.
func TestAuditsFindDamage(t *testing.T) {
	s, err := service.Start(t.Context(), service.Config{Root: "../../..", State: t.TempDir()})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	nine, zero := &types.AttributeValueMemberN{Value: "9"}, &types.AttributeValueMemberN{Value: "0"}
	for want, damage := range map[string]func(*fixture){
		"": func(f *fixture) { f.created() },
		"acknowledged and is lost": func(f *fixture) {
			_, err := f.stack.DynamoDB.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &f.stack.Credentials, Key: f.created()})
			must(t, err)
		},
		"refused and is stored": func(f *fixture) {
			o := f.order()
			f.send(o)
			o.Answered(service.Answer{Status: http.StatusTooManyRequests})
		},
		"is stored 2 times": func(f *fixture) {
			o := f.order()
			o.Answered(f.send(o))
			f.send(o)
		},
		"never asked for": func(f *fixture) {
			f.send(&ledger.Order{Name: "unknown", Workspace: f.account.Workspaces[0], Provider: "openai"})
		},
		"valid and was refused":    func(f *fixture) { f.order().Answered(service.Answer{Status: http.StatusBadRequest}) },
		"is stored otherwise than": func(f *fixture) { f.set(f.created(), "sort_order", nine) },
		"share position": func(f *fixture) {
			f.created()
			f.set(f.created(), "sort_order", zero)
		},
		"does not open": func(f *fixture) {
			first, second := f.created(), f.created()
			f.set(second, "seal", f.get(first)["seal"])
		},
		"1 versions of it are left": func(f *fixture) { f.stored().Answered(service.Answer{Status: http.StatusOK}) },
		"deleted twice": func(f *fixture) {
			file := f.stored()
			file.Answered(service.Answer{Status: http.StatusOK})
			file.Answered(service.Answer{Status: http.StatusOK})
		},
		"lost or changed": func(f *fixture) {
			_, err := f.stack.S3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &f.stack.Files, Key: aws.String(f.stored().Key())})
			must(t, err)
		},
	} {
		t.Run(want, func(t *testing.T) {
			f := newFixture(t, s)
			damage(f)
			report, err := f.ledger.Audit(t.Context(), f.stack)
			must(t, err)
			found := strings.Join(report.Broken, "\n")
			if (want == "") != (found == "") || !strings.Contains(found, want) {
				t.Errorf("found %q", found)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newFixture makes an account, and empties the table: an audit reads all of it.
func newFixture(t *testing.T, s *service.Service) *fixture {
	t.Helper()
	f := &fixture{t: t, stack: s.Stack(), client: service.NewClient(s.BaseURL(), 1)}
	all, err := f.stack.DynamoDB.Scan(t.Context(), &dynamodb.ScanInput{TableName: &f.stack.Credentials, ConsistentRead: aws.Bool(true)})
	must(t, err)
	for _, i := range all.Items {
		_, err := f.stack.DynamoDB.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: &f.stack.Credentials, Key: item{"pk": i["pk"], "sk": i["sk"]},
		})
		must(t, err)
	}
	f.account, err = service.NewAccount(t.Context(), f.stack, 1)
	must(t, err)
	keys, err := f.account.Keys(t.Context(), f.stack, 1)
	must(t, err)
	f.apiKey, f.ledger = keys[0].Token, ledger.New(f.account.ID)
	return f
}

func (f *fixture) order() *ledger.Order {
	f.orders++
	return f.ledger.Order(ledger.Order{
		Name: fmt.Sprintf("order-%d", f.orders), Workspace: f.account.Workspaces[0], Provider: "openai", APIKey: f.apiKey,
	})
}

func (f *fixture) send(o *ledger.Order) service.Answer {
	f.t.Helper()
	a, err := f.client.Create(f.t.Context(), f.apiKey, "", o.Body())
	must(f.t, err)
	if a.Status != http.StatusCreated {
		f.t.Fatalf("%d %s", a.Status, a.Body)
	}
	return a
}

// created returns the key of a credential that was created.
func (f *fixture) created() item {
	f.t.Helper()
	o := f.order()
	a := f.send(o)
	o.Answered(a)
	c, err := a.Credential()
	must(f.t, err)
	return item{
		"pk": &types.AttributeValueMemberS{Value: "workspace#" + c.Workspace},
		"sk": &types.AttributeValueMemberS{Value: "credential#" + c.ID},
	}
}

func (f *fixture) stored() *ledger.File {
	f.t.Helper()
	all, err := f.ledger.StoreFiles(f.t.Context(), f.stack, f.account.Workspaces, 1)
	must(f.t, err)
	return all[0]
}

func (f *fixture) get(key item) item {
	f.t.Helper()
	out, err := f.stack.DynamoDB.GetItem(f.t.Context(), &dynamodb.GetItemInput{TableName: &f.stack.Credentials, Key: key, ConsistentRead: aws.Bool(true)})
	must(f.t, err)
	return out.Item
}

func (f *fixture) set(key item, name string, value types.AttributeValue) {
	f.t.Helper()
	changed := f.get(key)
	changed[name] = value
	_, err := f.stack.DynamoDB.PutItem(f.t.Context(), &dynamodb.PutItemInput{TableName: &f.stack.Credentials, Item: changed})
	must(f.t, err)
}
