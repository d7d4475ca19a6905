package provision_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/local/provision"
	"signalbox.dev/infra/local/template"
	"signalbox.dev/infra/reach"
	"signalbox.dev/infra/testkit"
)

func start(t *testing.T) *engines.Engines {
	t.Helper()
	running, err := engines.Start(t.Context(), engines.Config{Dir: filepath.Join(t.TempDir(), "engines")})
	if err != nil {
		t.Fatalf("no engines to test on (run `make engines` first): %v", err)
	}
	t.Cleanup(func() { testkit.Must(t, running.Close()) })
	return running
}

// Make creates the template's resources the first time. Later it follows parameters, and
// refuses to lose data.
func TestMake(t *testing.T) {
	config, dir := start(t).Config(), t.TempDir()
	provisioned := func(parameters map[string]string) (template.Resources, error) {
		loaded, err := template.Load("testdata/template.yaml", parameters)
		testkit.Must(t, err)
		return provision.Make(t.Context(), loaded, config, dir, nil)
	}

	db := reach.DynamoDB(config)
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{ // as if it had been killed then
		TableName: aws.String("named-things"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	testkit.Must(t, err)
	made, err := provisioned(nil) // versioning is Enabled by default
	testkit.Must(t, err)
	for id, want := range map[string]string{"Things": "signalbox-local-Things", "Named": "named-things", "Files": "signalbox-local-files"} {
		if got := made[id]["Ref"]; got != want {
			t.Errorf("%s is called %q, want %q", id, got, want)
		}
	}
	if arn := made["Seal"]["Arn"]; !strings.HasPrefix(arn, "arn:aws:kms:us-east-1:") || !strings.HasSuffix(arn, made["Seal"]["Ref"]) {
		t.Errorf("the key is %v", made["Seal"])
	}
	things := aws.String(made["Things"]["Ref"])
	table, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: things})
	if err != nil || len(table.Table.KeySchema) != 2 || aws.ToString(table.Table.TableArn) != made["Things"]["Arn"] {
		t.Errorf("the table is %+v, %v", table, err)
	}
	ttl, err := db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: things})
	if err != nil || aws.ToString(ttl.TimeToLiveDescription.AttributeName) != "exp" || ttl.TimeToLiveDescription.TimeToLiveStatus == types.TimeToLiveStatusDisabled {
		t.Errorf("TTL is %+v, %v", ttl, err)
	}

	for _, want := range []string{"Enabled", "Suspended"} {
		again, err := provisioned(map[string]string{"Versioning": want})
		if diff := cmp.Diff(made, again); diff != "" || err != nil {
			t.Errorf("the second time: %v\n%s", err, diff)
		}
		bucket, err := reach.S3(config).GetBucketVersioning(t.Context(), &s3.GetBucketVersioningInput{Bucket: aws.String(made["Files"]["Ref"])})
		if err != nil || string(bucket.Status) != want {
			t.Errorf("versioning is %+v, %v, want %q", bucket, err, want)
		}
	}

	path := filepath.Join(dir, "resources.json")
	for _, c := range []struct{ resources, want string }{
		{`{"Seal":"arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000000"}`, "it is gone, and with it what it sealed"},
		{`{`, "reading " + path},
	} {
		testkit.Must(t, os.WriteFile(path, []byte(c.resources), 0o600))
		if _, err := provisioned(nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// A DynamoDB elsewhere may have forgotten all tables. That it has lost one of them is an
// error, as it is in one of our own.
func TestElsewhere(t *testing.T) {
	running, dir := start(t), t.TempDir()
	loaded, err := template.Load("testdata/template.yaml", nil)
	testkit.Must(t, err)
	db := reach.DynamoDB(running.Config())
	for _, c := range []struct {
		lost         []string
		warning, err string
	}{
		{nil, "", ""},
		{[]string{"signalbox-a-Things", "signalbox-a-named-things"}, "has forgotten the tables", ""},
		{[]string{"signalbox-a-Things"}, "", "it is gone"},
	} {
		for _, name := range c.lost {
			_, err := db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name})
			testkit.Must(t, err)
		}
		var warnings strings.Builder
		made, err := provision.Make(t.Context(), loaded, running.Config(), dir,
			&provision.Elsewhere{Prefix: "signalbox-a-", Warn: func(text string) { warnings.WriteString(text) }})
		switch {
		case c.err == "" && (err != nil || made["Things"]["Ref"] != "signalbox-a-Things" || !strings.Contains(warnings.String(), c.warning)):
			t.Errorf("%q lost: %v %v, %s", c.lost, made, err, warnings.String())
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q lost: %v, want %q", c.lost, err, c.err)
		}
	}
}
