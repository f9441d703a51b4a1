package house

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// module is the prefix of every import path of ours.
const module = "agent/"

// A goFile is one parsed source file, whatever system or tag it is built for.
type goFile struct {
	path string // from the top of the tree, with slashes
	test bool
	tree *ast.File
}

// imports returns the file's import paths.
func (f goFile) imports() []string {
	var paths []string
	for _, spec := range f.tree.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// dir is the folder of the file, "." for the top.
func (f goFile) dir() string { return filepath.ToSlash(filepath.Dir(f.path)) }

// loaded is read once: the go command takes most of a second.
var loaded = sync.OnceValues(load)

func tree(t *testing.T) []goFile {
	t.Helper()
	files, err := loaded()
	if err != nil {
		t.Fatalf("reading the tree: %v", err)
	}
	return files
}

// load parses every Go file of every package of the module. Files left out for
// this system or these tags are read too: a rule that holds only on Linux is
// no rule.
func load() ([]goFile, error) {
	out, err := goList("-json=Dir,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	top, err := topFolder()
	if err != nil {
		return nil, err
	}
	var files []goFile
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			Dir                                                          string
			GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
			full := filepath.Join(p.Dir, name)
			rel, err := filepath.Rel(top, full)
			if err != nil {
				return nil, err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), full, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, goFile{filepath.ToSlash(rel), strings.HasSuffix(name, "_test.go"), parsed})
		}
	}
	return files, nil
}

// goList runs "go list" at the top of the tree.
func goList(args ...string) ([]byte, error) {
	top, err := topFolder()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = top
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		return nil, &listError{err, string(exit.Stderr)}
	}
	return out, err
}

type listError struct {
	err    error
	stderr string
}

func (e *listError) Error() string { return e.err.Error() + ": " + e.stderr }

// topFolder is the tree's top. Tests run in their package's folder, two below.
func topFolder() (string, error) { return filepath.Abs("../..") }

// snippet parses source for the tests of the checks themselves.
func snippet(t *testing.T, path, source string) goFile {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("the example does not parse: %v", err)
	}
	return goFile{path, strings.HasSuffix(path, "_test.go"), parsed}
}
