package provision

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"signalbox.dev/infra/local/template"
)

// tables is a DynamoDB with these tables and their status, which never changes.
type tables map[string]string

// Do implements aws.HTTPClient.
func (d tables) Do(r *http.Request) (*http.Response, error) {
	var in struct{ TableName string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	operation := strings.TrimPrefix(path.Ext(r.Header.Get("X-Amz-Target")), ".")
	switch operation {
	case "CreateTable":
		d[in.TableName] = "ACTIVE"
	case "DeleteTable":
		delete(d, in.TableName)
	}
	status, body := http.StatusOK, `{"Table":{"TableStatus":"`+d[in.TableName]+`"}}`
	if operation == "DescribeTable" && d[in.TableName] == "" {
		status, body = http.StatusBadRequest, `{"__type":"ResourceNotFoundException"}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// If ExtendDB is killed while it makes a table, it never finishes that table.
func TestAnUnfinishedTable(t *testing.T) {
	made := template.Resource[table]{ID: "Table"}
	name := template.StackName + "-" + made.ID
	for recorded, want := range map[string]string{"": "ACTIVE", "its ARN": "CREATING"} {
		synctest.Test(t, func(t *testing.T) {
			d := tables{name: "CREATING"}
			p := &provisioner{
				db: dynamodb.New(dynamodb.Options{
					Region: "us-east-1", BaseEndpoint: aws.String("http://localhost"), HTTPClient: d, Credentials: aws.AnonymousCredentials{},
				}),
				existing: map[string]string{made.ID: recorded}, made: template.Resources{},
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := p.table(ctx, made); d[name] != want || (err == nil) != (want == "ACTIVE") {
				t.Errorf("recorded as %q: %s, %v; want %s", recorded, d[name], err, want)
			}
		})
	}
}
