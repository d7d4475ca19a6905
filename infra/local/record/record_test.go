package record_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/record"
)

// fixture is a function's SDK clients, a recorder, and a fake service that answers
// 400 to everything: only the requests matter.
type fixture struct {
	db        *dynamodb.Client
	kms       *kms.Client
	s3        *s3.Client
	endpoints record.Services

	mu    sync.Mutex
	calls []string
	hosts []string // as the service sees them
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s := &fixture{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.hosts = append(s.hosts, r.Host)
		s.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(service.Close)
	recorder := record.New(map[string]string{"stack-Control": "Control", "stack-Access": "Access", "stack-files": "Files", "arn:key": "SealingKey"},
		func(c record.Call) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.calls = append(s.calls, c.String())
		})
	t.Cleanup(func() {
		if err := recorder.Close(); err != nil {
			t.Error(err)
		}
	})
	var err error
	s.endpoints, err = recorder.Endpoints("F", record.Services{DynamoDB: service.URL, KMS: service.URL, S3: service.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} }}
	s.db = dynamodb.NewFromConfig(c, func(o *dynamodb.Options) { o.BaseEndpoint = &s.endpoints.DynamoDB })
	s.kms = kms.NewFromConfig(c, func(o *kms.Options) { o.BaseEndpoint = &s.endpoints.KMS })
	s.s3 = s3.NewFromConfig(c, func(o *s3.Options) { o.BaseEndpoint = &s.endpoints.S3 })
	return s
}

func text(s string) ddb.AttributeValue { return &ddb.AttributeValueMemberS{Value: s} }

func key(pk string) map[string]ddb.AttributeValue {
	return map[string]ddb.AttributeValue{"pk": text(pk), "sk": text("sort")}
}

// failed returns the error of a call.
func failed(_ any, err error) error { return err }

// Requests of the SDK are named as IAM names them.
func TestCalls(t *testing.T) {
	f := newFixture(t)
	for i, err := range []error{
		failed(f.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("stack-Access"), Key: key("key#123")})),
		failed(f.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("stack-Access"), Key: key("workspace#1"),
			UpdateExpression:         aws.String("SET #next.#p = if_not_exists(#next.#p, :zero) + :one, list[2] = :x REMOVE gone"),
			ConditionExpression:      aws.String("#account = :account AND NOT (attribute_exists(deleted_at.at)) OR size(x) IN (:a, :b)"),
			ExpressionAttributeNames: map[string]string{"#next": "next", "#p": "openai", "#account": "account"},
			ReturnValues:             ddb.ReturnValueUpdatedNew,
		})),
		failed(f.db.Query(t.Context(), &dynamodb.QueryInput{
			TableName: aws.String("stack-Control"), KeyConditionExpression: aws.String("#p=:pk AND begins_with(sk, :prefix)"),
			ExpressionAttributeNames:  map[string]string{"#p": "pk"},
			ExpressionAttributeValues: map[string]ddb.AttributeValue{":pk": text("workspace#1"), ":prefix": text("credential#")},
		})),
		failed(f.db.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]ddb.KeysAndAttributes{
			"stack-Access": {Keys: []map[string]ddb.AttributeValue{key("key#1"), key("key#2"), key("account#3")}},
		}})),
		failed(f.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{
			{Put: &ddb.Put{TableName: aws.String("stack-Control"), Item: map[string]ddb.AttributeValue{"pk": text("idem#1"), "exp": text("2")}}},
			{ConditionCheck: &ddb.ConditionCheck{TableName: aws.String("stack-Access"), Key: key("key#1"), ConditionExpression: aws.String("attribute_exists(pk)")}},
		}})),
		failed(f.kms.GenerateDataKey(t.Context(), &kms.GenerateDataKeyInput{
			KeyId: aws.String("arn:key"), EncryptionContext: map[string]string{"purpose": "p/q", "account": "1234"},
		})),
		failed(f.s3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("stack-files"), Key: aws.String("files/1/2"), IfMatch: aws.String("*")})),
		failed(f.s3.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String("stack-files"), Delete: &s3types.Delete{Objects: []s3types.ObjectIdentifier{
			{Key: aws.String("files/1/2"), VersionId: aws.String("v")}, {Key: aws.String("other")},
		}}})),
		failed(f.s3.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: aws.String("stack-files"), Prefix: aws.String("files/1/2"), MaxKeys: aws.Int32(7)})),
		failed(f.s3.GetBucketAcl(t.Context(), &s3.GetBucketAclInput{Bucket: aws.String("stack-files")})),
	} {
		if err == nil {
			t.Errorf("request %d: the service's error did not arrive", i)
		}
	}
	want := []string{
		`{"function":"F","action":"dynamodb:GetItem","resource":"Access","conditions":{"dynamodb:Attributes":["pk","sk"],"dynamodb:LeadingKeys":["key#*"]}}`,
		`{"function":"F","action":"dynamodb:UpdateItem","resource":"Access","conditions":{"dynamodb:Attributes":["account","deleted_at","gone","list","next","pk","sk","x"],"dynamodb:LeadingKeys":["workspace#*"],"dynamodb:ReturnValues":["UPDATED_NEW"]}}`,
		`{"function":"F","action":"dynamodb:Query","resource":"Control","conditions":{"dynamodb:Attributes":["pk","sk"],"dynamodb:LeadingKeys":["workspace#*"]}}`,
		`{"function":"F","action":"dynamodb:BatchGetItem","resource":"Access","conditions":{"dynamodb:Attributes":["pk","sk"],"dynamodb:LeadingKeys":["account#*","key#*"]}}`,
		`{"function":"F","action":"dynamodb:PutItem","resource":"Control","conditions":{"dynamodb:Attributes":["exp","pk"],"dynamodb:EnclosingOperation":["TransactWriteItems"],"dynamodb:LeadingKeys":["idem#*"]}}`,
		`{"function":"F","action":"dynamodb:ConditionCheckItem","resource":"Access","conditions":{"dynamodb:Attributes":["pk","sk"],"dynamodb:EnclosingOperation":["TransactWriteItems"],"dynamodb:LeadingKeys":["key#*"]}}`,
		`{"function":"F","action":"kms:GenerateDataKey","resource":"SealingKey","conditions":{"kms:EncryptionContext:account":["*"],"kms:EncryptionContext:purpose":["p/q"],"kms:EncryptionContextKeys":["account","purpose"]}}`,
		`{"function":"F","action":"s3:DeleteObject","resource":"Files","object":"files/*/*","conditions":{"s3:if-match":["*"]}}`,
		`{"function":"F","action":"s3:DeleteObjectVersion","resource":"Files","object":"files/*/*","conditions":{"s3:versionid":["*"]}}`,
		`{"function":"F","action":"s3:DeleteObject","resource":"Files","object":"other","conditions":{}}`,
		`{"function":"F","action":"s3:ListBucketVersions","resource":"Files","conditions":{"s3:max-keys":["7"],"s3:prefix":["files/*/*"]}}`,
		`{"function":"F","action":"s3:GET acl=","resource":"Files","conditions":{}}`,
	}
	if diff := cmp.Diff(want, f.calls); diff != "" {
		t.Errorf("calls (want -, got +):\n%s", diff)
	}
}

func TestUnsignedIsNoCall(t *testing.T) {
	f := newFixture(t)
	response, err := http.Get(f.endpoints.S3 + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusBadRequest || len(f.calls) != 0 {
		t.Errorf("status %d, calls %v", response.StatusCode, f.calls)
	}
	// A signature covers the host, so the service must see the function's.
	if want := f.endpoints.S3; len(f.hosts) != 1 || "http://"+f.hosts[0] != want {
		t.Errorf("the service saw the host %v, want %s", f.hosts, want)
	}
}
