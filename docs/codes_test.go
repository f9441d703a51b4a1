package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// numbered are the two families of codes that carry a number.
var numbered = []string{"provider_http_N", "provider_connection_os_N"}

// protocolCodes are the constants of type Code in the protocol.
func protocolCodes(t *testing.T) []string {
	t.Helper()
	file := goFile(t, "../protocol/codes.go")
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" {
				codes = append(codes, text(spec.Values[0]))
			}
		}
		return true
	})
	if len(codes) < 200 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	return codes
}

func goFile(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// text is the value of a string literal, or "".
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}

// failing are the functions whose first argument is a code.
var failing = []string{"Fail", "Errorf"}

var codeWord = regexp.MustCompile(`^[a-z]+(_[a-z0-9]+)*$`)

// writtenCodes are those that a file spells out instead of naming a constant of the
// protocol: as what a failing function is given, as a field Code, as a value of a
// variable named code, as a constant of its own.
func writtenCodes(file *ast.File) []string {
	var codes []string
	add := func(e ast.Expr) {
		if s := text(e); codeWord.MatchString(s) {
			codes = append(codes, s)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 1 && slices.Contains(failing, f.Sel.Name) {
				if pkg, ok := f.X.(*ast.Ident); ok && (pkg.Name == "protocol" || pkg.Name == "model") {
					add(n.Args[0])
				}
			}
		case *ast.ValueSpec:
			if typ, ok := n.Type.(*ast.SelectorExpr); ok && typ.Sel.Name == "Code" && len(n.Values) == 1 {
				add(n.Values[0])
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
				add(n.Value)
			}
		case *ast.AssignStmt:
			if name, ok := n.Lhs[0].(*ast.Ident); ok && name.Name == "code" && len(n.Rhs) == 1 {
				add(n.Rhs[0])
			}
		}
		return true
	})
	return codes
}

var codesOfRow = regexp.MustCompile("`([a-z][a-zA-Z0-9_]*)`")

// explained are the codes in the first column of the page's tables of codes,
// each with how often it stands there.
func explained(page string) map[string]int {
	found := map[string]int{}
	inTable := false
	for _, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "| Code |"):
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable:
			for _, m := range codesOfRow.FindAllStringSubmatch(strings.Split(line, " | ")[0], -1) {
				found[m[1]]++
			}
		}
	}
	return found
}

func TestTroubleshootingHasEveryCode(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, code := range append(protocolCodes(t), numbered...) {
		known[code] = true
	}
	written := 0
	for _, root := range []string{"../internal/cli", "../client", "../internal/daemon", "../internal/engine", "../internal/model", "../internal/tool", "../internal/sonny/cleanup", "../internal/sonny/config", "../internal/sonny/memory", "../internal/sonny/skill", "../internal/sonny/cli", "../internal/sonny/headless", "../internal/sonny/host", "../internal/sonny/lead"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && strings.HasSuffix(path, "test") {
				return filepath.SkipDir
			}
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				for _, code := range writtenCodes(goFile(t, path)) {
					if !strings.HasPrefix(code, "provider_http_") {
						known[code] = true
						written++
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if written < 20 {
		t.Errorf("only %d written codes were found: the tree was not read", written)
	}
	found := explained(read(t, "TROUBLESHOOTING.md"))
	for code := range known {
		if found[code] == 0 {
			t.Errorf("TROUBLESHOOTING.md does not explain %s", code)
		}
	}
	for code, times := range found {
		if !known[code] {
			t.Errorf("TROUBLESHOOTING.md explains %s, and there is no such code", code)
		}
		if times > 1 {
			t.Errorf("TROUBLESHOOTING.md explains %s %d times", code, times)
		}
	}
}
