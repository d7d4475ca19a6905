package byok_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
)

// spoil changes what is remembered of a request, as no version of this service
// does.
func (v *vault) spoil(id byok.RequestID, attribute string, value types.AttributeValue) {
	v.Helper()
	_, err := v.db.UpdateItem(v.Context(), &dynamodb.UpdateItemInput{
		TableName: &v.engines.Tables.Control, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: string(id)}},
		UpdateExpression: aws.String("SET #a = :value"), ConditionExpression: aws.String("attribute_exists(pk)"),
		ExpressionAttributeNames:  map[string]string{"#a": attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":value": value},
	})
	if err != nil {
		v.Fatal(err)
	}
}

// What cannot be read may be the answer to this very request: it is neither
// replayed nor taken for nothing.
func TestAnUnreadableRecordIsNeitherReplayedNorWrittenOver(t *testing.T) {
	v := newVault(t)
	for attribute, value := range map[string]types.AttributeValue{
		"v":           &types.AttributeValueMemberN{Value: "1"}, // its fingerprint was of the canonical body
		"fingerprint": &types.AttributeValueMemberN{Value: "1"},
	} {
		id, fingerprint := request(6), []byte("print")
		if _, err := v.CreateOnce(t.Context(), v.draft(), id, fingerprint, []byte("answer")); err != nil {
			t.Fatal(err)
		}
		v.spoil(id, attribute, value)
		stored := len(v.stored())
		for range 20 { // attributes are decoded in any order, and no more of them after the bad one
			if found, err := v.Recall(t.Context(), id); err == nil {
				t.Fatalf("%s: recalled %+v", attribute, found)
			}
		}
		v.broken.Heal()
		// It is not tried again either: that would go on until the request's time is up.
		v.broken.Inject(faults.Rule{Operation: "TransactWriteItems", Call: 2, Fault: faults.Refuse()})
		if earlier, err := v.CreateOnce(t.Context(), v.draft(), id, fingerprint, []byte("another")); err == nil {
			t.Errorf("%s: created beside %+v", attribute, earlier)
		}
		for _, c := range v.broken.Calls() {
			if c.Operation == "TransactWriteItems" && c.Number > 1 {
				t.Errorf("%s: it was tried again", attribute)
			}
		}
		if got := len(v.stored()); got != stored {
			t.Errorf("%s: %d credentials are stored, want %d", attribute, got, stored)
		}
		v.broken.Heal()
	}
}
