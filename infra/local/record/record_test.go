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

// scene is a function's SDK clients before a recorder, and behind it a service
// that refuses everything: what is asked is all that matters.
type scene struct {
	db        *dynamodb.Client
	kms       *kms.Client
	s3        *s3.Client
	endpoints record.Services

	mu    sync.Mutex
	calls []string
	hosts []string // that the service was asked by
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{}
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

// TestCalls: what the SDK sends is named as IAM would.
func TestCalls(t *testing.T) {
	tests := map[string]struct {
		ask  func(*testing.T, *scene) error
		want []string
	}{
		"get": {
			func(t *testing.T, s *scene) error {
				_, err := s.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("stack-Access"), Key: key("key#123")})
				return err
			},
			[]string{`{"function":"F","action":"dynamodb:GetItem","resource":"Access","conditions":{"dynamodb:Attributes":["pk","sk"],"dynamodb:LeadingKeys":["key#*"]}}`},
		},
		"update": {
			func(t *testing.T, s *scene) error {
				_, err := s.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
					TableName: aws.String("stack-Access"), Key: key("workspace#1"),
					UpdateExpression:         aws.String("SET #next.#p = if_not_exists(#next.#p, :zero) + :one, list[2] = :x REMOVE gone"),
					ConditionExpression:      aws.String("#account = :account AND NOT (attribute_exists(deleted_at.at)) OR size(x) IN (:a, :b)"),
					ExpressionAttributeNames: map[string]string{"#next": "next", "#p": "openai", "#account": "account"},
					ReturnValues:             ddb.ReturnValueUpdatedNew,
				})
				return err
			},
			[]string{`{"function":"F","action":"dynamodb:UpdateItem","resource":"Access","conditions":{"dynamodb:Attributes":["account","deleted_at","gone","list","next","pk","sk","x"],"dynamodb:LeadingKeys":["workspace#*"],"dynamodb:ReturnValues":["UPDATED_NEW"]}}`},
		},
		"query": {
			func(t *testing.T, s *scene) error {
				_, err := s.db.Query(t.Context(), &dynamodb.QueryInput{
					TableName: aws.String("stack-Control"), KeyConditionExpression: aws.String("#p=:pk AND begins_with(sk, :prefix)"),
					ExpressionAttributeNames:  map[string]string{"#p": "pk"},
					ExpressionAttributeValues: map[string]ddb.AttributeValue{":pk": text("workspace#1"), ":prefix": text("credential#")},
				})
				return err
			},
			[]string{`{"function":"F","action":"dynamodb:Query","resource":"Control","conditions":{"dynamodb:Attributes":["pk","sk"],"dynamodb:LeadingKeys":["workspace#*"]}}`},
		},
		"batch": {
			func(t *testing.T, s *scene) error {
				_, err := s.db.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]ddb.KeysAndAttributes{
					"stack-Access": {Keys: []map[string]ddb.AttributeValue{key("key#1"), key("key#2"), key("account#3")}},
				}})
				return err
			},
			[]string{`{"function":"F","action":"dynamodb:BatchGetItem","resource":"Access","conditions":{"dynamodb:Attributes":["pk","sk"],"dynamodb:LeadingKeys":["account#*","key#*"]}}`},
		},
		"transaction": {
			func(t *testing.T, s *scene) error {
				_, err := s.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{
					{Put: &ddb.Put{TableName: aws.String("stack-Control"), Item: map[string]ddb.AttributeValue{"pk": text("idem#1"), "exp": text("2")}}},
					{ConditionCheck: &ddb.ConditionCheck{TableName: aws.String("stack-Access"), Key: key("key#1"), ConditionExpression: aws.String("attribute_exists(pk)")}},
				}})
				return err
			},
			[]string{
				`{"function":"F","action":"dynamodb:PutItem","resource":"Control","conditions":{"dynamodb:Attributes":["exp","pk"],"dynamodb:EnclosingOperation":["TransactWriteItems"],"dynamodb:LeadingKeys":["idem#*"]}}`,
				`{"function":"F","action":"dynamodb:ConditionCheckItem","resource":"Access","conditions":{"dynamodb:Attributes":["pk","sk"],"dynamodb:EnclosingOperation":["TransactWriteItems"],"dynamodb:LeadingKeys":["key#*"]}}`,
			},
		},
		"data key": {
			func(t *testing.T, s *scene) error {
				_, err := s.kms.GenerateDataKey(t.Context(), &kms.GenerateDataKeyInput{
					KeyId: aws.String("arn:key"), EncryptionContext: map[string]string{"purpose": "p/q", "account": "1234"},
				})
				return err
			},
			[]string{`{"function":"F","action":"kms:GenerateDataKey","resource":"SealingKey","conditions":{"kms:EncryptionContext:account":["*"],"kms:EncryptionContext:purpose":["p/q"],"kms:EncryptionContextKeys":["account","purpose"]}}`},
		},
		"delete": {
			func(t *testing.T, s *scene) error {
				_, err := s.s3.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("stack-files"), Key: aws.String("files/1/2"), IfMatch: aws.String("*")})
				return err
			},
			[]string{`{"function":"F","action":"s3:DeleteObject","resource":"Files","object":"files/*/*","conditions":{"s3:if-match":["*"]}}`},
		},
		"delete versions": {
			func(t *testing.T, s *scene) error {
				_, err := s.s3.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String("stack-files"), Delete: &s3types.Delete{Objects: []s3types.ObjectIdentifier{
					{Key: aws.String("files/1/2"), VersionId: aws.String("v")}, {Key: aws.String("other")},
				}}})
				return err
			},
			[]string{
				`{"function":"F","action":"s3:DeleteObjectVersion","resource":"Files","object":"files/*/*","conditions":{"s3:versionid":["*"]}}`,
				`{"function":"F","action":"s3:DeleteObject","resource":"Files","object":"other","conditions":{}}`,
			},
		},
		"list versions": {
			func(t *testing.T, s *scene) error {
				_, err := s.s3.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: aws.String("stack-files"), Prefix: aws.String("files/1/2"), MaxKeys: aws.Int32(7)})
				return err
			},
			[]string{`{"function":"F","action":"s3:ListBucketVersions","resource":"Files","conditions":{"s3:max-keys":["7"],"s3:prefix":["files/*/*"]}}`},
		},
		"what it does not know": {
			func(t *testing.T, s *scene) error {
				_, err := s.s3.GetBucketAcl(t.Context(), &s3.GetBucketAclInput{Bucket: aws.String("stack-files")})
				return err
			},
			[]string{`{"function":"F","action":"s3:GET acl=","resource":"Files","conditions":{}}`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if err := test.ask(t, s); err == nil {
				t.Error("the service's refusal did not arrive")
			}
			if diff := cmp.Diff(s.calls, test.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnsignedIsNoCall(t *testing.T) {
	s := newScene(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.endpoints.S3+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusBadRequest || len(s.calls) != 0 {
		t.Errorf("status %d, calls %v", response.StatusCode, s.calls)
	}
	// A signature covers the host, so the service must see the function's.
	if want := s.endpoints.S3; len(s.hosts) != 1 || "http://"+s.hosts[0] != want {
		t.Errorf("the service was asked by %v, want %s", s.hosts, want)
	}
}
