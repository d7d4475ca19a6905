package drift_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/local/template"
	"signalbox.dev/infra/testkit"
)

// TestTables: what tests store their items in are the template's tables.
func TestTables(t *testing.T) {
	tested := testkit.Tables{
		Access: "AccessTable", Credentials: "CredentialsTable", SyncJobs: "SyncJobsTable", Control: "ControlTable",
	}.Keys()
	tables, err := loaded(t).Tables()
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string][]string{}
	for _, table := range tables {
		for _, key := range table.Keys {
			declared[table.ID] = append(declared[table.ID], key.Name)
		}
		for _, attribute := range table.Attributes {
			if attribute.Type != "S" {
				t.Errorf("%s: %s is %s, not a string", table.ID, attribute.Name, attribute.Type)
			}
		}
	}
	if diff := cmp.Diff(tested, declared); diff != "" {
		t.Errorf("tests and template (-want +got):\n%s", diff)
	}
}

// everything is all that the functions' environment may name, made.
func everything(t *testing.T) template.Resources {
	t.Helper()
	l, made := loaded(t), template.Resources{}
	tables, err := l.Tables()
	if err != nil {
		t.Fatal(err)
	}
	buckets, err := l.Buckets()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := l.Keys()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		made[table.ID] = template.Attributes{"Ref": table.ID, "Arn": table.ID}
	}
	for _, bucket := range buckets {
		made[bucket.ID] = template.Attributes{"Ref": bucket.ID, "Arn": bucket.ID}
	}
	for _, key := range keys {
		made[key.ID] = template.Attributes{"Ref": key.ID, "Arn": key.ID}
	}
	return made
}
