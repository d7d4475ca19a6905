package awsmodel_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"signalbox.dev/infra/test/awsmodel"
	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/ids"
)

// The cases of the functions and of the operator prove the model by use: `.ci/run` plays them on
// the engines too. These tests hold what no case meets. Each says what AWS documents; sides are
// the model and, where it agrees with AWS, the engine.

func model(versioning string) aws.Config {
	w := awsmodel.New(awsmodel.Config{Tables: []string{"control"}, Bucket: "files", Versioning: versioning})
	return aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), HTTPClient: w}
}

func code(err error) string {
	if known, ok := errors.AsType[smithy.APIError](err); ok {
		return known.ErrorCode()
	}
	return ""
}

// A conditional deletion of what never existed is a 404, over a delete marker a 412. versitygw
// answers 412 to both; the service takes either (S3 User Guide, conditional deletes).
func TestConditionalDeletion(t *testing.T) {
	b := kit.Bucket{Client: s3.NewFromConfig(model("Enabled")), Name: "files"}
	remove := func() string {
		_, err := b.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &b.Name, Key: aws.String("a"), IfMatch: aws.String("*")})
		return code(err)
	}
	absent := remove()
	b.Hide(t, "a")
	if hidden := remove(); absent != "NoSuchKey" || hidden != "PreconditionFailed" {
		t.Errorf("absent: %s, over a marker: %s", absent, hidden)
	}
}

// The headers of a version and of a marker, and a listing's prefix and first page.
func TestVersions(t *testing.T) {
	engines := kit.Start(t)
	for name, b := range map[string]kit.Bucket{
		"model":  {Client: s3.NewFromConfig(model("Enabled")), Name: "files"},
		"engine": {Client: s3.NewFromConfig(engines.Config), Name: engines.Bucket(t, s3types.BucketVersioningStatusEnabled)},
	} {
		put, err := b.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.Name, Key: aws.String("a"), Body: strings.NewReader("x")})
		kit.Must(t, err)
		b.Put(t, "b", "other")
		hidden, err := b.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &b.Name, Key: aws.String("a")})
		kit.Must(t, err)
		if aws.ToString(put.VersionId) == "" || aws.ToString(put.ETag) == "" || !aws.ToBool(hidden.DeleteMarker) || aws.ToString(hidden.VersionId) == "" {
			t.Errorf("%s: a version %v, a marker %v %v", name, put.VersionId, hidden.DeleteMarker, hidden.VersionId)
		}
		page, err := b.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &b.Name, Prefix: aws.String("a"), MaxKeys: aws.Int32(1)})
		kit.Must(t, err)
		all, err := b.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &b.Name, Prefix: aws.String("a")})
		kit.Must(t, err)
		if !aws.ToBool(page.IsTruncated) || len(page.Versions)+len(page.DeleteMarkers) != 1 || len(all.Versions) != 1 || len(all.DeleteMarkers) != 1 || aws.ToBool(all.IsTruncated) {
			t.Errorf("%s: a page %+v, all %+v", name, page, all)
		}
	}
}

// A transaction's token makes a repetition succeed without an effect, and another transaction
// fail. A put replaces all attributes. A condition may name an attribute's type.
func TestTokensAndPuts(t *testing.T) {
	engines := kit.Start(t)
	pk := string(ids.New[ids.Workspace]())
	for name, db := range map[string]*dynamodb.Client{"model": dynamodb.NewFromConfig(model("")), "engine": dynamodb.NewFromConfig(engines.Config)} {
		rows := kit.Rows{DB: db, Table: engines.Tables.Control}
		transact := func(value string) string {
			put := &types.Put{TableName: &rows.Table, Item: kit.Row{"pk": kit.Text(pk), value: kit.Text("x")}, ConditionExpression: aws.String("attribute_not_exists(pk)")}
			_, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(pk), TransactItems: []types.TransactWriteItem{{Put: put}}})
			return code(err)
		}
		if got, want := []string{transact("a"), transact("a"), transact("b")}, []string{"", "", "IdempotentParameterMismatchException"}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: transactions end in %q, want %q", name, got, want)
		}
		rows.Put(t, kit.Row{"pk": kit.Text(pk), "c": kit.Text("x")})
		if row := rows.Get(t, kit.Key(pk)); len(row) != 2 || row["c"] == nil {
			t.Errorf("%s: a put leaves %v", name, row)
		}
		isNot := func(kind string) string {
			_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName: &rows.Table, Item: kit.Row{"pk": kit.Text(pk), "c": kit.Text("x")},
				ConditionExpression: aws.String("NOT attribute_type(c, :kind)"), ExpressionAttributeValues: kit.Row{":kind": kit.Text(kind)},
			})
			return code(err)
		}
		if text, flag := isNot("S"), isNot("BOOL"); text != "ConditionalCheckFailedException" || flag != "" {
			t.Errorf("%s: the type of a text: %q, %q", name, text, flag)
		}
	}
}
