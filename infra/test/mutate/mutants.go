package main

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// mutant changes one condition, sum or statement.
type mutant struct {
	file       string
	line       int
	start, end int    // of what is changed, in bytes
	was, now   string // as the report shows them
	code       string // replaces it; it names the same variables, so that it compiles
}

// commands are modules of their own.
var commands = []string{"infra/admin", "infra/router"}

// find lists the mutants of the folders' code. The path of each file contains only.
func find(only string, folders ...string) (mutants []mutant, err error) {
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"), !strings.Contains(path, only):
				return nil
			}
			found, err := mutantsOf(path)
			mutants = append(mutants, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return mutants, nil
}

func mutantsOf(path string) (mutants []mutant, err error) {
	source, err := os.ReadFile(path) //nolint:gosec // code of ours
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, 0)
	if err != nil {
		return nil, err
	}
	text := func(from, to token.Pos) string {
		return string(source[files.Position(from).Offset:files.Position(to).Offset])
	}
	seen := make(map[ast.Expr]bool)
	// add mutates an expression: to each of the constants, and in its operator.
	add := func(e ast.Expr, constants ...string) {
		if seen[e] {
			return
		}
		seen[e] = true
		from, was := files.Position(e.Pos()), text(e.Pos(), e.End())
		replace := func(now, code string) {
			mutants = append(mutants, mutant{path, from.Line, from.Offset, from.Offset + len(was), was, now, code})
		}
		for _, c := range constants {
			replace(c, map[string]string{"true": "(true || (" + was + "))", "false": "(false && (" + was + "))"}[c])
		}
		if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok {
			for _, op := range operators[b.Op] {
				changed := "(" + text(b.X.Pos(), b.X.End()) + " " + op.String() + " " + text(b.Y.Pos(), b.Y.End()) + ")"
				replace(changed, changed)
			}
		} else {
			replace("!("+was+")", "!("+was+")")
		}
	}
	// remove removes each statement that is not needed to compile.
	remove := func(list []ast.Stmt) {
		for _, statement := range list {
			if a, ok := statement.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
				continue
			}
			switch statement.(type) {
			case *ast.AssignStmt, *ast.DeferStmt, *ast.ExprStmt, *ast.GoStmt, *ast.IncDecStmt, *ast.SendStmt:
				from, was := files.Position(statement.Pos()), text(statement.Pos(), statement.End())
				if !strings.HasPrefix(was, "panic(") {
					mutants = append(mutants, mutant{path, from.Line, from.Offset, from.Offset + len(was), was, "nothing", "if false {\n" + was + "\n}"})
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			remove(n.List)
		case *ast.CommClause:
			remove(n.Body)
		case *ast.CaseClause:
			remove(n.Body)
		case *ast.IfStmt:
			add(n.Cond, "true", "false")
		case *ast.ForStmt:
			if n.Cond != nil {
				add(n.Cond, "true", "false")
			}
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				if clause, ok := c.(*ast.CaseClause); ok && n.Tag == nil {
					for _, e := range clause.List {
						add(e, "true", "false")
					}
				}
			}
		case *ast.BinaryExpr:
			switch sum := text(n.Pos(), n.End()); {
			case operators[n.Op] == nil, n.Op == token.ADD && strings.ContainsAny(sum, "\"`"): // a text has no difference
				return true
			case n.Op == token.ADD, n.Op == token.SUB:
				add(n)
				return true
			}
			add(n, "true", "false")
			// These constants remove an operand of && or ||.
			if idle, ok := map[token.Token]string{token.LAND: "true", token.LOR: "false"}[n.Op]; ok {
				add(n.X, idle)
				add(n.Y, idle)
			}
		}
		return true
	})
	return mutants, nil
}

// operators are the replacements of each operator: its opposite, or one with
// another boundary. The sum of two texts does not compile with "-".
var operators = map[token.Token][]token.Token{
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.ADD: {token.SUB}, token.SUB: {token.ADD},
}

// run lets the judge judge the mutant, and returns the output of its tests.
func (m mutant) run(ctx context.Context, timeout time.Duration, j judge) (string, error) {
	folder, err := os.MkdirTemp("", "signalbox-mutate")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	mutated, overlay := filepath.Join(folder, "mutated.go"), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
	if err != nil {
		return "", err
	}
	code := string(source[:m.start]) + m.code + string(source[m.end:])
	if err := errors.Join(os.WriteFile(mutated, []byte(code), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil { //nolint:gosec // a folder of ours
		return "", err
	}
	return j.test(ctx, "-overlay", overlay, "-vet=off", "-failfast", "-timeout", timeout.String())
}
