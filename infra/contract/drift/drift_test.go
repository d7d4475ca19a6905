package drift_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/contract/openapi"
	"signalbox.dev/infra/local/template"
)

const (
	root = "../../.."
	// base is the version's part of every path, which the description has in its
	// server's address.
	base = "/api/v1"
)

func loaded(t *testing.T) *template.Template {
	t.Helper()
	l, err := template.Load(filepath.Join(root, "template.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func api(t *testing.T) template.API {
	t.Helper()
	declared, err := loaded(t).API()
	if err != nil {
		t.Fatal(err)
	}
	return declared
}

func described(t *testing.T) map[string]string {
	t.Helper()
	spec, err := openapi.Load(filepath.Join(root, "infra", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return spec.Operations()
}

// folderOf is createByokKey's create-byok-key.
func folderOf(operation string) string {
	capital := regexp.MustCompile(`[A-Z]`)
	return capital.ReplaceAllStringFunc(operation, func(c string) string { return "-" + strings.ToLower(c) })
}

// functionOf is createByokKey's CreateByokKeyFunction.
func functionOf(operation string) string {
	return strings.ToUpper(operation[:1]) + operation[1:] + "Function"
}

// TestNames: the operations of the description are the routes of the template
// and the folders of the code, and are called the same everywhere.
func TestNames(t *testing.T) {
	routes, folders := map[string]string{}, map[string]string{}
	for operation, route := range described(t) {
		method, path, _ := strings.Cut(route, " ")
		routes[functionOf(operation)] = method + " " + base + path
		folders[folderOf(operation)] = operation + " " + method + " " + base + path
	}
	declared := map[string]string{}
	for _, r := range api(t).Routes {
		declared[r.Function] += r.Method + " " + r.Path
	}
	if diff := cmp.Diff(routes, declared); diff != "" {
		t.Errorf("description and template (-want +got):\n%s", diff)
	}
	written := map[string]string{}
	for folder, s := range sources(t) {
		written[folder] = s.operation + " " + s.method + " " + s.resource
	}
	if diff := cmp.Diff(folders, written); diff != "" {
		t.Errorf("description and code (-want +got):\n%s", diff)
	}
}

// TestMakeTargets: SAM's makefile builder asks for build-<logical id>; that and
// what runs locally are built from the operation's folder.
func TestMakeTargets(t *testing.T) {
	for operation := range described(t) {
		id, folder := functionOf(operation), "./functions/"+folderOf(operation)
		for target, file := range map[string]string{
			"build-" + id:            `"/artifacts/bootstrap"`,
			".build/functions/" + id: ".build/functions/" + id + "/bootstrap",
		} {
			make := exec.CommandContext(t.Context(), "make", "--dry-run", "-C", root, target, "ARTIFACTS_DIR=/artifacts") //nolint:gosec // names of ours
			commands, err := make.CombinedOutput()
			if err != nil || !strings.Contains(string(commands), " -o "+file+" "+folder+"\n") {
				t.Errorf("make %s: %v\n%s", target, err, commands)
			}
		}
	}
}

// TestEnvironment: a function's environment is what its code asks for, and
// where its AWS services are, which SAM's local runner can say only in variables
// that are declared.
func TestEnvironment(t *testing.T) {
	functions, err := loaded(t).Functions(everything(t))
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string][]string{}
	for _, f := range functions {
		declared[f.ID] = slices.Sorted(maps.Keys(f.Environment))
	}
	asked := map[string][]string{}
	for _, s := range sources(t) {
		names := slices.Clone(s.variables)
		for _, service := range s.services {
			names = append(names, "AWS_ENDPOINT_URL_"+strings.ToUpper(service))
		}
		slices.Sort(names)
		asked[functionOf(s.operation)] = names
	}
	if diff := cmp.Diff(asked, declared); diff != "" {
		t.Errorf("code and template (-want +got):\n%s", diff)
	}
}

// TestStageVariables: those that the code reads are those that the stage has.
func TestStageVariables(t *testing.T) {
	var read []string
	for _, s := range sources(t) {
		read = append(read, s.stage...)
	}
	slices.Sort(read)
	if diff := cmp.Diff(read, slices.Sorted(maps.Keys(api(t).StageVariables))); diff != "" {
		t.Errorf("code and template (-want +got):\n%s", diff)
	}
}
