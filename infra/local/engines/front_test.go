package engines_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/local/engines"
)

// A caller who leaves does not keep the engine from finishing.
func TestTheEngineFinishesWhatItWasAsked(t *testing.T) {
	arrived, left, finished := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	engine := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-left
		select {
		case <-r.Context().Done():
		case <-time.After(50 * time.Millisecond): // it would have been told by then
		}
		finished <- r.Context().Err()
	}))
	defer engine.Close()
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, engines.Front(t, engine.URL), strings.NewReader("all of it"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-arrived
		leave()
	}()
	if answer, err := http.DefaultClient.Do(request); err == nil {
		_ = answer.Body.Close()
		t.Error("the caller did not leave")
	}
	close(left)
	if err := <-finished; err != nil {
		t.Errorf("the engine was told to stop: %v", err)
	}
}

// Callers who leave in the middle of their writes do not stop those who stay.
func TestExtendDBOutlivesCallersWhoLeave(t *testing.T) {
	const table = "kept"
	e := start(t, engines.Config{DynamoDB: engines.ExtendDB})
	fill(t, e, table)
	db := dynamodb.NewFromConfig(e.AWSConfig(), func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
	put := func(ctx context.Context, key string) error {
		item := func(name string) types.TransactWriteItem {
			return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: name}}}}
		}
		_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{item(key), item(key + "b")}})
		return err
	}
	waiter := dynamodb.NewTableExistsWaiter(db, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 50 * time.Millisecond })
	if err := waiter.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)}, patience); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		var all sync.WaitGroup
		for caller := range 20 {
			all.Go(func() {
				ctx, leave := context.WithTimeout(t.Context(), rand.N(20*time.Millisecond)) //nolint:gosec // no secret
				defer leave()
				_ = put(ctx, fmt.Sprint(round, caller)) // most are gone by then
			})
		}
		all.Wait()
		if err := put(t.Context(), "stays"); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}
