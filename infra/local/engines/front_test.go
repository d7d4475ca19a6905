package engines_test

import (
	"context"
	"fmt"
	"io"
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
	ctx, leave := context.WithCancel(t.Context())
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave()
		_, _ = io.Copy(w, r.Body)
	}))
	defer engine.Close()
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("all of it"))
	engines.Front(t, engine.URL).ServeHTTP(answer, request)
	if got := answer.Body.String(); got != "all of it" {
		t.Errorf("the engine finished %q", got)
	}
}

// Callers who leave in the middle of their writes do not stop those who stay.
func TestExtendDBOutlivesCallersWhoLeave(t *testing.T) {
	const table = "kept"
	e := start(t, engines.Config{})
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
