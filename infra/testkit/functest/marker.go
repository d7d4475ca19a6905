package functest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
)

const (
	// Marker is part of everything that must be seen nowhere: provider keys,
	// idempotency keys, names of unknown members, stray headers.
	Marker = "xqSECRETqx"
	// Private is part of what may be told to its owner and stored, and belongs in
	// no log: names, models, users.
	Private = "xqPRIVATEqx"
	// quoted is part of what a service says of a failure: for no caller and no log.
	quoted = "xqQUOTEDqx"
	// token is how API keys begin: no other word of ours does.
	token = "sbx_"
)

// Secret is a new secret of at least 16 characters, with a marker in its middle
// so that its label shows none.
func Secret() string {
	return "sk-" + Marker + string(ids.New[ids.Job]()) + "-end"
}

// exposed is what of a secret stands in the text, in clear or in one of the
// dresses that software puts on text.
func exposed(text string) (what string, found bool) {
	for _, secret := range []string{Marker, token} {
		for _, dressed := range []string{secret, url.QueryEscape(secret)} {
			if strings.Contains(text, dressed) {
				return secret, true
			}
		}
	}
	return "", false
}

// checkLeaks looks for secrets in all that came of a request: the answer, the
// log, the errors on their way to the adapter, and what was sent to AWS.
func checkLeaks(t testing.TB, body string, a Answer, errs []error) {
	t.Helper()
	places := map[string]string{"the answer": string(a.payload), "the log": a.log}
	for _, err := range errs {
		for err := range chain(err) {
			places[fmt.Sprintf("an error (%T)", err)] += fmt.Sprintf("%v %+v %#v ", err, err, err)
		}
	}
	for _, c := range a.Calls {
		sent, _ := json.Marshal([]any{c.Input, c.Path, c.Query, c.Header})
		places["a call of "+c.Operation] += string(sent) + binaries(c.Input)
	}
	for place, text := range places {
		if what, found := exposed(text); found {
			t.Errorf("%s holds %s: %.2000s", place, what, text)
		}
		private := place == "the log" || strings.HasPrefix(place, "an error")
		if private && strings.Contains(text, Private) {
			t.Errorf("%s holds what is the caller's own: %.2000s", place, text)
		}
	}
	if strings.Contains(a.log, quoted) || strings.Contains(string(a.payload), quoted) {
		t.Errorf("what AWS wrote of a failure is repeated: %s %s", a.payload, a.log)
	}
	if body != "" && strings.Contains(a.log, body) {
		t.Error("the log holds the body of the request")
	}
}

// chain yields an error and all that it wraps.
func chain(err error) func(yield func(error) bool) {
	return func(yield func(error) bool) {
		for open := []error{err}; len(open) > 0; {
			err, open = open[0], open[1:]
			if err == nil {
				continue
			}
			if !yield(err) {
				return
			}
			switch wrapper := err.(type) { //nolint:errorlint // the chain itself is walked
			case interface{ Unwrap() error }:
				open = append(open, wrapper.Unwrap())
			case interface{ Unwrap() []error }:
				open = append(open, wrapper.Unwrap()...)
			}
		}
	}
}

// binaries are the binary attributes in the input of a call, decoded.
func binaries(v any) string {
	var found strings.Builder
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if text, ok := member.(string); ok && name == "B" {
				decoded, _ := base64.StdEncoding.DecodeString(text)
				found.Write(decoded)
			}
			found.WriteString(binaries(member))
		}
	case []any:
		for _, element := range v {
			found.WriteString(binaries(element))
		}
	}
	return found.String()
}

// SearchTables looks for secrets in every item of every table.
func (s *Env) SearchTables(t testing.TB) {
	t.Helper()
	tables := s.Engines.Tables
	for _, table := range []string{tables.Access, tables.Credentials, tables.SyncJobs, tables.Control} {
		pages := dynamodb.NewScanPaginator(s.DB, &dynamodb.ScanInput{TableName: aws.String(table)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(context.WithoutCancel(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range page.Items {
				if what, found := exposed(words(&types.AttributeValueMemberM{Value: item})); found {
					t.Errorf("table %s holds %s in an item", table, what)
				}
			}
		}
	}
}

// words is all text and all bytes in an attribute.
func words(v types.AttributeValue) string {
	var found strings.Builder
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		found.WriteString(v.Value)
	case *types.AttributeValueMemberB:
		found.Write(v.Value)
	case *types.AttributeValueMemberL:
		for _, element := range v.Value {
			found.WriteString(words(element))
		}
	case *types.AttributeValueMemberM:
		for name, member := range v.Value {
			found.WriteString(name + "\n" + words(member) + "\n")
		}
	}
	return found.String()
}
