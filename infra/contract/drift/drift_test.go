// Package drift compares what the template, the description, the code and the
// Makefile each say of the three operations. It starts nothing.
package drift_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/contract/openapi"
	"signalbox.dev/infra/local/template"
	"signalbox.dev/infra/testkit"
)

const (
	root = "../../.."
	// base is the part of every path that the description has in its server's URL.
	base = "/api/v1"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func loaded(t *testing.T) (*template.Template, template.API) {
	t.Helper()
	declared, err := template.Load(filepath.Join(root, "template.yaml"), nil)
	must(t, err)
	api, err := declared.API()
	must(t, err)
	return declared, api
}

// operations maps the logical id of each function to its operation in the
// description: createByokKey is CreateByokKeyFunction.
func operations(t *testing.T) (ids, routes map[string]string) {
	t.Helper()
	spec, err := openapi.Load(filepath.Join(root, "infra", "openapi.yaml"))
	must(t, err)
	ids, routes = map[string]string{}, map[string]string{}
	for id, route := range spec.Operations() {
		function := strings.ToUpper(id[:1]) + id[1:] + "Function"
		method, path, _ := strings.Cut(route, " ")
		ids[function], routes[function] = id, method+" "+base+path
	}
	return ids, routes
}

// folderOf returns createByokKey's create-byok-key.
func folderOf(operation string) string {
	return strings.ToLower(regexp.MustCompile(`[A-Z]`).ReplaceAllString(operation, "-$0"))
}

// source returns the code of an operation, without its tests.
func source(t *testing.T, operation string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "functions", folderOf(operation), "*.go"))
	must(t, err)
	var code strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			text, err := os.ReadFile(file) //nolint:gosec // the repository's own
			must(t, err)
			code.Write(text)
		}
	}
	return code.String()
}

// found returns what the expression's one group matches, sorted.
func found(code, expression string) []string {
	var all []string
	for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(code, -1) {
		all = append(all, match[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func compare(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestNames: the operations of the description are the routes of the template
// and the folders of the code.
func TestNames(t *testing.T) {
	ids, routes := operations(t)
	_, api := loaded(t)
	declared := map[string]string{}
	for _, r := range api.Routes {
		declared[r.Function] += r.Method + " " + r.Path
	}
	compare(t, "description and template", routes, declared)
	folders, err := os.ReadDir(filepath.Join(root, "functions"))
	must(t, err)
	if len(folders) != len(ids) {
		t.Errorf("%d functions, the description has %d operations", len(folders), len(ids))
	}
	for function, id := range ids {
		code := source(t, id)
		method, path, _ := strings.Cut(routes[function], " ")
		want := []string{id, method, path}
		got := slices.Concat(found(code, `\bID: +"(.+?)"`), found(code, `\bMethod: +http\.Method(\w+)`), found(code, `\bResource: +"(.+?)"`))
		if len(got) > 1 {
			got[1] = strings.ToUpper(got[1])
		}
		compare(t, "description and code of "+id, want, got)
	}
}

// TestMakeTargets: SAM's makefile builder runs build-<logical id>. That and the
// local binary are built from the operation's folder.
func TestMakeTargets(t *testing.T) {
	ids, _ := operations(t)
	for function, operation := range ids {
		for target, file := range map[string]string{
			"build-" + function:            `"/artifacts/bootstrap"`,
			".build/functions/" + function: ".build/functions/" + function + "/bootstrap",
		} {
			make := exec.CommandContext(t.Context(), "make", "--dry-run", "-C", root, target, "ARTIFACTS_DIR=/artifacts") //nolint:gosec // names of ours
			commands, err := make.CombinedOutput()
			if err != nil || !strings.Contains(string(commands), " -o "+file+" ./functions/"+folderOf(operation)+"\n") {
				t.Errorf("make %s: %v\n%s", target, err, commands)
			}
		}
	}
}

// TestVariables: the environment of a function is what its code reads, and where
// its AWS services are: sam local can set only variables that are declared. The
// stage's variables are those that the code reads.
func TestVariables(t *testing.T) {
	declared, api := loaded(t)
	text, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	must(t, err)
	made := template.Resources{} // all that an environment may refer to
	for _, id := range found(string(text), `(?m)^  (\w+):\n    Type: AWS::(?:DynamoDB::Table|S3::Bucket|KMS::Key)$`) {
		made[id] = template.Attributes{"Ref": id, "Arn": id}
	}
	functions, err := declared.Functions(made)
	must(t, err)
	ids, _ := operations(t)
	var stage []string
	for _, f := range functions {
		code := source(t, ids[f.ID])
		want := found(code, `env\.Get\("(.+?)"\)`)
		for _, service := range found(code, `"github\.com/aws/aws-sdk-go-v2/service/(\w+)"`) {
			want = append(want, "AWS_ENDPOINT_URL_"+strings.ToUpper(service))
		}
		if strings.Contains(code, "boot.DynamoDB(env)") {
			want = append(want, "AWS_ENDPOINT_URL_DYNAMODB")
		}
		slices.Sort(want)
		want = slices.Compact(want)
		compare(t, "code and environment of "+f.ID, want, slices.Sorted(maps.Keys(f.Environment)))
		stage = append(stage, found(code, `\.StageVariable\("(.+?)"\)`)...)
	}
	slices.Sort(stage)
	compare(t, "code and stage", stage, slices.Sorted(maps.Keys(api.StageVariables)))
}

// TestTables: the tables of the test kit are the template's.
func TestTables(t *testing.T) {
	tested := testkit.Tables{
		Access: "AccessTable", Credentials: "CredentialsTable", SyncJobs: "SyncJobsTable", Control: "ControlTable",
	}.Keys()
	declared, _ := loaded(t)
	tables, err := declared.Tables()
	must(t, err)
	got := map[string][]string{}
	for _, table := range tables {
		for _, key := range table.Keys {
			got[table.ID] = append(got[table.ID], key.Name)
		}
		for _, attribute := range table.Attributes {
			if attribute.Type != "S" {
				t.Errorf("%s: %s is %s, not a string", table.ID, attribute.Name, attribute.Type)
			}
		}
	}
	compare(t, "test kit and template", tested, got)
}
