package contract_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestItemsExpire: what a key leaves in the control table goes away by itself. It
// has the attribute that the template's TTL names, not before the contract lets
// it go.
func TestItemsExpire(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	began := time.Now()
	post(bodyWith("")).as(n.management).idempotent(idempotencyKey).do(t).is(t, http.StatusCreated)
	del("file_unknown").as(n.management).do(t).is(t, http.StatusNotFound)

	ttl, err := n.db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &n.names.Control})
	if err != nil {
		t.Fatal(err)
	}
	attribute := aws.ToString(ttl.TimeToLiveDescription.AttributeName)
	items, err := n.db.Scan(t.Context(), &dynamodb.ScanInput{
		TableName: &n.names.Control, ConsistentRead: aws.Bool(true),
		FilterExpression:          aws.String("contains(pk, :hash)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":hash": &types.AttributeValueMemberS{Value: hashOf(n.management)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]time.Duration{"idem": 24 * time.Hour, "limit": time.Minute / perMinute}
	if len(items.Items) != len(kept) {
		t.Fatalf("%d items, want %d", len(items.Items), len(kept))
	}
	for _, item := range items.Items {
		t.Log(item)
		number, _ := item[attribute].(*types.AttributeValueMemberN)
		seconds, err := strconv.ParseInt(number.Value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(time.Unix(seconds, 0).Sub(began))
	}
}
