package ledger_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"signalbox.dev/infra/torture/caller"
	"signalbox.dev/infra/torture/ledger"
	"signalbox.dev/infra/torture/service"
	"signalbox.dev/infra/torture/world"
	"signalbox.dev/shared/files"
)

// desk is a client with a ledger, and hands that can reach into storage.
type desk struct {
	*testing.T
	stack   *service.Stack
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
	for want, damage := range map[string]func(*desk){
		"":                         func(d *desk) { d.created() },
		"acknowledged and is lost": func(d *desk) { d.remove(d.created()) },
		"refused and is stored": func(d *desk) {
			o := d.order()
			d.ask(o)
			o.Told(caller.Answer{Status: http.StatusTooManyRequests})
		},
		"is stored 2 times": func(d *desk) {
			o := d.order()
			o.Told(d.ask(o))
			d.ask(o)
		},
		"never asked for": func(d *desk) {
			d.ask(&ledger.Order{Name: "stray", Workspace: d.account.Workspaces[0], Provider: "openai"})
		},
		"as it should be, was refused": func(d *desk) { d.order().Told(caller.Answer{Status: http.StatusBadRequest}) },
		"is stored otherwise than":     func(d *desk) { d.set(d.created(), "sort_order", &types.AttributeValueMemberN{Value: "9"}) },
		"share position": func(d *desk) {
			d.created()
			d.set(d.created(), "sort_order", &types.AttributeValueMemberN{Value: "0"})
		},
		"does not open": func(d *desk) {
			first, second := d.created(), d.created()
			d.set(second, "seal", d.get(first)["seal"])
		},
		"1 versions of it are left": func(d *desk) { d.stored().Told(caller.Answer{Status: http.StatusOK}) },
		"deleted twice": func(d *desk) {
			f := d.stored()
			f.Told(caller.Answer{Status: http.StatusOK})
			f.Told(caller.Answer{Status: http.StatusOK})
		},
		"not there as it was": func(d *desk) {
			f := d.stored()
			key := files.Key(f.Workspace, f.ID)
			_, err := d.stack.S3.DeleteObject(d.Context(), &s3.DeleteObjectInput{Bucket: &d.stack.Files, Key: &key})
			d.must(err)
		},
	} {
		t.Run(want, func(t *testing.T) {
			d := newDesk(t, s)
			defer d.sweep()
			damage(d)
			report, err := d.ledger.Audit(t.Context(), d.stack)
			d.must(err)
			found := strings.Join(report.Broken, "\n")
			if (want == "") != (found == "") || !strings.Contains(found, want) {
				t.Errorf("found %q", found)
			}
		})
	}
}

func newDesk(t *testing.T, s *service.Service) *desk {
	d := &desk{T: t, stack: s.Stack(), client: caller.New(s.BaseURL(), 1)}
	var err error
	d.account, err = world.NewAccount(t.Context(), d.stack, 1)
	d.must(err)
	keys, err := d.account.Keys(t.Context(), d.stack, 1)
	d.must(err)
	d.apiKey, d.ledger = keys[0].Token, ledger.New(d.account.ID)
	return d
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) order() *ledger.Order {
	d.orders++
	return d.ledger.Order(ledger.Order{
		Name: fmt.Sprintf("order-%d", d.orders), Workspace: d.account.Workspaces[0], Provider: "openai", APIKey: d.apiKey,
	})
}

func (d *desk) ask(o *ledger.Order) caller.Answer {
	d.Helper()
	a, err := d.client.Create(d.Context(), d.apiKey, "", o.Body())
	d.must(err)
	if a.Status != http.StatusCreated {
		d.Fatalf("%d %s", a.Status, a.Body)
	}
	return a
}

// created is the row of an order that was accepted.
func (d *desk) created() map[string]types.AttributeValue {
	d.Helper()
	o := d.order()
	a := d.ask(o)
	o.Told(a)
	c, err := a.Credential()
	d.must(err)
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "workspace#" + c.Workspace},
		"sk": &types.AttributeValueMemberS{Value: "credential#" + c.ID},
	}
}

func (d *desk) stored() *ledger.File {
	d.Helper()
	all, err := d.account.Files(d.Context(), d.stack, d.ledger, 1)
	d.must(err)
	return all[0]
}

func (d *desk) get(row map[string]types.AttributeValue) map[string]types.AttributeValue {
	d.Helper()
	out, err := d.stack.DynamoDB.GetItem(d.Context(), &dynamodb.GetItemInput{TableName: &d.stack.Credentials, Key: row, ConsistentRead: aws.Bool(true)})
	d.must(err)
	return out.Item
}

func (d *desk) set(row map[string]types.AttributeValue, name string, value types.AttributeValue) {
	d.Helper()
	item := d.get(row)
	item[name] = value
	_, err := d.stack.DynamoDB.PutItem(d.Context(), &dynamodb.PutItemInput{TableName: &d.stack.Credentials, Item: item})
	d.must(err)
}

func (d *desk) remove(row map[string]types.AttributeValue) {
	d.Helper()
	_, err := d.stack.DynamoDB.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &d.stack.Credentials, Key: row})
	d.must(err)
}

// sweep leaves nothing for the next: an audit looks at the whole table.
func (d *desk) sweep() {
	d.Helper()
	out, err := d.stack.DynamoDB.Scan(context.Background(), &dynamodb.ScanInput{TableName: &d.stack.Credentials, ConsistentRead: aws.Bool(true)})
	d.must(err)
	for _, item := range out.Items {
		d.remove(map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]})
	}
}

func TestLeaksAreFound(t *testing.T) {
	state := t.TempDir()
	if found, err := ledger.Leaks(state); err != nil || len(found) > 0 {
		t.Fatalf("found %v, %v", found, err)
	}
	secret := (&ledger.Order{Name: "order-1"}).Secret()
	if err := os.WriteFile(filepath.Join(state, "log"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := ledger.Leaks(state); err != nil || len(found) != 1 {
		t.Errorf("found %v, %v", found, err)
	}
}
