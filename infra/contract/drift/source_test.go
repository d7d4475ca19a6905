package drift_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is what the code of one function says of what is around it.
type source struct {
	operation string // api.Operation's ID
	method    string // and its Method and Resource
	resource  string
	variables []string // of the environment
	stage     []string // variables of the stage
	services  []string // of AWS, by the last element of the SDK package's path
}

// sources reads functions/*, by folder.
func sources(t *testing.T) map[string]source {
	t.Helper()
	folders, err := os.ReadDir(filepath.Join(root, "functions"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]source{}
	for _, folder := range folders {
		all[folder.Name()] = read(t, filepath.Join(root, "functions", folder.Name()))
	}
	return all
}

func read(t *testing.T, folder string) source {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var s source
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, s.note)
	}
	slices.Sort(s.variables)
	slices.Sort(s.stage)
	slices.Sort(s.services)
	return s
}

// note keeps what is looked for.
func (s *source) note(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		if dir, service := path.Split(text(n.Path)); dir == "github.com/aws/aws-sdk-go-v2/service/" {
			s.services = append(s.services, service)
		}
	case *ast.CallExpr:
		s.call(n)
	case *ast.CompositeLit:
		if callee(n.Type) == "Operation" {
			s.literal(n)
		}
	}
	return true
}

func (s *source) call(c *ast.CallExpr) {
	if len(c.Args) != 1 {
		return
	}
	switch callee(c.Fun) {
	case "env.Get":
		s.variables = append(s.variables, text(c.Args[0]))
	case "r.StageVariable":
		s.stage = append(s.stage, text(c.Args[0]))
	}
}

func (s *source) literal(l *ast.CompositeLit) {
	for _, element := range l.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch callee(pair.Key) {
		case "ID":
			s.operation = text(pair.Value)
		case "Method": // http.MethodGet
			s.method = strings.ToUpper(strings.TrimPrefix(callee(pair.Value), "http.Method"))
		case "Resource":
			s.resource = text(pair.Value)
		}
	}
}

// callee is a name as it is written, less the package of a type of api's.
func callee(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return strings.TrimPrefix(callee(e.X)+"."+e.Sel.Name, "api.")
	}
	return ""
}

// text is what a string literal holds. Anything else is "", which matches nothing.
func text(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}
