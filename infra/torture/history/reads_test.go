package history_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/routing"
)

// versions are tables with one workspace. Its one credential has another id after each
// write; a query shows the id of one instant.
type versions struct {
	current, queries atomic.Int64
}

// GetItem returns the API key's row or the workspace's.
func (v *versions) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	row := testkit.Row{
		"pk": in.Key["pk"], "sk": in.Key["sk"], "v": testkit.Number("1"), "account": testkit.Text("a"),
		"kind": testkit.Text("standard"), "disabled": &types.AttributeValueMemberBOOL{},
	}
	if testkit.TextOf(in.Key, "sk") == "key" {
		row["workspace"] = testkit.Text("w")
	}
	return &dynamodb.GetItemOutput{Item: row}, nil
}

// Query takes up to 18 ms.
func (v *versions) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	n := v.queries.Add(1)
	time.Sleep(time.Duration(n*7%10) * time.Millisecond)
	id := "version-" + strconv.FormatInt(v.current.Load(), 10)
	time.Sleep(time.Duration(n*3%10) * time.Millisecond)
	no, null := &types.AttributeValueMemberBOOL{}, &types.AttributeValueMemberNULL{Value: true}
	return &dynamodb.QueryOutput{Items: []testkit.Row{{
		"pk": testkit.Text("workspace#w"), "sk": testkit.Text("credential#" + id), "v": testkit.Number("1"), "id": testkit.Text(id),
		"account": testkit.Text("a"), "workspace": testkit.Text("w"), "provider": testkit.Text("openai"), "sort_order": testkit.Number("0"),
		"disabled": no, "is_byok_only": no, "is_fallback": no, "is_required": no,
		"allowed_models": null, "allowed_user_ids": null, "allowed_api_key_hashes": null,
	}}}, nil
}

// sharing shares a query that is under way, as a reader must not.
type sharing struct {
	*versions
	mu       sync.Mutex
	underWay *shared
}

type shared struct {
	done chan struct{}
	out  *dynamodb.QueryOutput
}

// Query waits for the query under way, if there is one.
func (s *sharing) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	s.mu.Lock()
	query, mine := s.underWay, s.underWay == nil
	if mine {
		query = &shared{done: make(chan struct{})}
		s.underWay = query
	}
	s.mu.Unlock()
	if !mine {
		<-query.done
		return query.out, nil
	}
	var err error
	query.out, err = s.versions.Query(ctx, in, options...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay = nil
	close(query.done)
	return query.out, err
}

// register is one value: writes set it, and reads return the last one written.
var register = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		if written, ok := input.(int64); ok {
			return true, written
		}
		return output == state, state
	},
}

// Plans of concurrent requests are linearizable: each shows an instant between its
// beginning and its end, though requests share reads. A share of a read under way is
// found.
func TestSharedReadsAreLinearizable(t *testing.T) {
	for name, want := range map[string]bool{"the reader's own": true, "of a read under way": false} {
		synctest.Test(t, func(t *testing.T) {
			v := new(versions)
			var tables interface {
				GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
				Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
			} = v
			if !want {
				tables = &sharing{versions: v}
			}
			history := readAndWrite(t, v, func(c routing.Config) (*routing.Reader, error) { return routing.NewReader(tables, nil, c) })
			if got := porcupine.CheckOperations(register, history); got != want {
				t.Errorf("shares %s: linearizable: %v in %d operations", name, got, len(history))
			}
		})
	}
}

// readAndWrite writes every 5 ms while ten clients read, and returns what they saw.
func readAndWrite(t *testing.T, v *versions, newReader func(routing.Config) (*routing.Reader, error)) []porcupine.Operation {
	t.Helper()
	reader, err := newReader(routing.Config{AccessTable: "a", CredentialsTable: "c", SealingKeyARNs: []string{"k"}})
	testkit.Must(t, err)
	bearer, err := auth.ParseBearer([]string{"Bearer sbx_test"})
	testkit.Must(t, err)
	var clock atomic.Int64 // orders what happens at one instant of the bubble's time
	var mu sync.Mutex
	var history []porcupine.Operation
	note := func(client int, call int64, input, output any) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: client, Call: call, Input: input, Output: output, Return: clock.Add(1)})
	}
	var group sync.WaitGroup
	for client := range 10 {
		group.Go(func() {
			for n := range 30 {
				time.Sleep(time.Duration((client*13+n*7)%11) * time.Millisecond)
				call := clock.Add(1)
				caller, err := reader.Identify(t.Context(), bearer)
				if err != nil {
					t.Error(err)
					return
				}
				reading, err := reader.Read(t.Context(), caller, routing.Request{Providers: []string{"openai"}})
				if err != nil {
					t.Error(err)
					return
				}
				seen, err := strconv.ParseInt(string(reading.Steps[0].Credential)[len("version-"):], 10, 64)
				if err != nil {
					t.Error(err)
				}
				note(client, call, nil, seen)
			}
		})
	}
	for n := int64(1); n <= 60; n++ {
		time.Sleep(5 * time.Millisecond)
		call := clock.Add(1)
		v.current.Store(n)
		note(10, call, n, nil)
	}
	group.Wait()
	time.Sleep(time.Second) // the timers of the reader end
	return history
}
