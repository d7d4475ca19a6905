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
)

// stack is engines and the folder in which provision remembers.
type stack struct {
	config aws.Config
	dir    string
}

func newStack(t *testing.T) stack {
	t.Helper()
	running, err := engines.Start(t.Context(), engines.Config{Dir: filepath.Join(t.TempDir(), "engines")})
	if err != nil {
		t.Fatalf("no engines to test on (run `make engines` first): %v", err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
	})
	return stack{config: running.AWSConfig(), dir: t.TempDir()}
}

func (s stack) make(t *testing.T, parameters map[string]string) (template.Resources, error) {
	t.Helper()
	loaded, err := template.Load("testdata/template.yaml", parameters)
	if err != nil {
		t.Fatal(err)
	}
	return provision.Make(t.Context(), loaded, s.config, s.dir)
}

func (s stack) mustMake(t *testing.T, parameters map[string]string) template.Resources {
	t.Helper()
	made, err := s.make(t, parameters)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestMake(t *testing.T) {
	s := newStack(t)
	made := s.mustMake(t, nil)

	for id, want := range map[string]string{"Things": "signalbox-local-Things", "Named": "named-things", "Files": "signalbox-local-files"} {
		if got := made[id]["Ref"]; got != want {
			t.Errorf("%s is called %q, want %q", id, got, want)
		}
	}
	if arn := made["Seal"]["Arn"]; !strings.HasPrefix(arn, "arn:aws:kms:us-east-1:") || !strings.HasSuffix(arn, made["Seal"]["Ref"]) {
		t.Errorf("the key is %v", made["Seal"])
	}

	db := dynamodb.NewFromConfig(s.config)
	table, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(made["Things"]["Ref"])})
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Table.KeySchema) != 2 || aws.ToString(table.Table.TableArn) != made["Things"]["Arn"] {
		t.Errorf("the table is %+v", table.Table)
	}
	ttl, err := db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(made["Things"]["Ref"])})
	if err != nil {
		t.Fatal(err)
	}
	if got := aws.ToString(ttl.TimeToLiveDescription.AttributeName); got != "exp" || ttl.TimeToLiveDescription.TimeToLiveStatus == types.TimeToLiveStatusDisabled {
		t.Errorf("TTL is %+v", ttl.TimeToLiveDescription)
	}
	s.wantVersioning(t, made, "Enabled")
}

func (s stack) wantVersioning(t *testing.T, made template.Resources, want string) {
	t.Helper()
	got, err := s3.NewFromConfig(s.config).GetBucketVersioning(t.Context(), &s3.GetBucketVersioningInput{Bucket: aws.String(made["Files"]["Ref"])})
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Status) != want {
		t.Errorf("versioning is %q, want %q", got.Status, want)
	}
}

// What is there stays; what a parameter changes is changed.
func TestMakeAgain(t *testing.T) {
	s := newStack(t)
	first := s.mustMake(t, nil)
	second := s.mustMake(t, map[string]string{"Versioning": "Suspended"})
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	s.wantVersioning(t, second, "Suspended")
}

func TestMakeRefuses(t *testing.T) {
	s := newStack(t)
	s.mustMake(t, nil)
	if _, err := s.make(t, map[string]string{"Sort": "other"}); err == nil || !strings.Contains(err.Error(), "its key is not the one that the template declares") {
		t.Errorf("got %v for another key schema", err)
	}
	path := filepath.Join(s.dir, "resources.json")
	if err := os.WriteFile(path, []byte(`{"Seal":"arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000000"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.make(t, nil); err == nil || !strings.Contains(err.Error(), "it is gone, and with it what it sealed") {
		t.Errorf("got %v for a key that is gone", err)
	}
	if err := os.WriteFile(path, []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.make(t, nil); err == nil || !strings.Contains(err.Error(), "reading "+path) {
		t.Errorf("got %v for an unreadable file", err)
	}
}
