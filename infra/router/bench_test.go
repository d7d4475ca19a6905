package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// BenchmarkRequest measures a routed request, /plan and then /open, beside a program
// that makes the same reads and decides nothing. `make bench` shows the ratio.
func BenchmarkRequest(b *testing.B) {
	f := newFixture(b)
	f.start(f.engines.Config) // without faults
	callers := f.callers(16)  // in turn, so that no read waits for the one before
	b.Run("by=authorizer", func(b *testing.B) {
		for _, c := range callers { // identified once, and its key opened
			f.request(b, f.address, c)
		}
		for n := 0; b.Loop(); n++ {
			f.request(b, f.address, callers[n%len(callers)])
		}
	})
	b.Run("by=reads", func(b *testing.B) {
		address := f.readsOnly(b, callers)
		for n := 0; b.Loop(); n++ {
			f.request(b, address, callers[n%len(callers)])
		}
	})
}

// benchCaller is a bound API key of a workspace with one credential.
type benchCaller struct {
	token     string
	workspace ids.Workspace
}

func (f *fixture) callers(count int) (all []benchCaller) {
	f.Helper()
	for range count {
		w := f.tenant.NewWorkspace(f)
		f.tenant.Workspace = w
		f.store("sk-bench", byok.Settings{})
		all = append(all, benchCaller{f.tenant.StandardKey(f, w), w})
	}
	return all
}

func (f *fixture) request(b *testing.B, address string, c benchCaller) {
	b.Helper()
	f.address = address
	plan := f.post("/plan/v1/chat", `{"model":"m"}`, bearer(c.token)...)
	if a := f.open(plan.header.Get("X-Signalbox-Plan")); plan.status != http.StatusOK || a.status != http.StatusOK {
		b.Fatalf("%+v, %+v", plan, a)
	}
}

// readsOnly serves /plan with the reads of the authorizer, side by side, and /open with
// nothing. It returns its address.
func (f *fixture) readsOnly(b *testing.B, callers []benchCaller) string {
	b.Helper()
	db, workspaces := dynamodb.NewFromConfig(f.engines.Config), map[string]ids.Workspace{}
	for _, c := range callers {
		workspaces["Bearer "+c.token] = c.workspace
	}
	get := func(ctx context.Context, pk, sk string) error {
		_, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &f.config.Stack.AccessTable, Key: testkit.Key(pk, sk), ConsistentRead: aws.Bool(true)})
		return err
	}
	server := &http.Server{ReadHeaderTimeout: headerTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/open") {
			return
		}
		authorization := r.Header.Get("Authorization")
		pk := "workspace#" + string(workspaces[authorization])
		var failed [3]error
		var group sync.WaitGroup
		group.Go(func() {
			failed[0] = get(r.Context(), "key#"+string(auth.HashKey(authorization[len("Bearer "):])), "key")
		})
		group.Go(func() { failed[1] = get(r.Context(), pk, "workspace") })
		_, failed[2] = db.Query(r.Context(), &dynamodb.QueryInput{
			TableName: &f.config.Stack.CredentialsTable, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":pk": testkit.Text(pk)},
		})
		group.Wait()
		for _, err := range failed {
			if err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
	})}
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(b, err)
	go func() { _ = server.Serve(listener) }() // until Close
	b.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}
