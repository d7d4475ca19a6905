package contract_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestItemsExpire: what a key leaves in the control table expires, by the
// attribute that the table's TTL names, and not before the contract lets it.
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
	if len(items.Items) != 2 {
		t.Errorf("%d items, want that of the limiter and the idempotency record", len(items.Items))
	}
	kept := map[string]time.Duration{"limit": time.Minute / perMinute, "idem": 24 * time.Hour}
	for _, item := range items.Items {
		pk, _ := item["pk"].(*types.AttributeValueMemberS)
		kind, _, _ := strings.Cut(pk.Value, "#")
		expires, ok := item[attribute].(*types.AttributeValueMemberN)
		if !ok {
			t.Fatalf("an item of %s# has no %q", kind, attribute)
		}
		seconds, err := strconv.ParseInt(expires.Value, 10, 64)
		// An hour more is no matter; for ever, or milliseconds, would be.
		if left := time.Unix(seconds, 0).Sub(began); err != nil || left < kept[kind] || left > kept[kind]+2*time.Hour {
			t.Errorf("an item of %s# expires in %s, want %s (%v)", kind, left, kept[kind], err)
		}
	}
}
