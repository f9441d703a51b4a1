package house

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var updateSurface = flag.Bool("update", false, "write the files of testdata/surface anew")

// TestSurface holds what the public packages offer against what they offered: a
// change to it breaks other people's programs, so it is to be seen in a review.
//
//	go test ./internal/house -run Surface -update
func TestSurface(t *testing.T) {
	t.Parallel()
	top, err := topFolder()
	if err != nil {
		t.Fatal(err)
	}
	offered := map[string]string{}
	for folder, files := range publicPackages(tree(t)) {
		text, err := surface(top, files)
		if err != nil {
			t.Fatal(err)
		}
		offered[strings.ReplaceAll(folder, "/", "-")+".txt"] = text
	}
	if len(offered) < 3 {
		t.Fatalf("%d public packages found", len(offered))
	}
	dir := filepath.Join("testdata", "surface")
	kept, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range kept {
		if _, there := offered[filepath.Base(file)]; !there && *updateSurface {
			os.Remove(file)
		} else if !there {
			t.Errorf("%s is of no public package any more", file)
		}
	}
	for name, text := range offered {
		file := filepath.Join(dir, name)
		if *updateSurface {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v: run this test with -update", err)
		}
		for _, line := range changes(string(want), text) {
			t.Errorf("%s: %s", name, line)
		}
	}
}

// publicPackages are the files of the packages that other modules may import
// and that are meant for them, by folder.
func publicPackages(files []goFile) map[string][]goFile {
	byFolder := map[string][]goFile{}
	for _, f := range files {
		if first, _, _ := strings.Cut(f.dir(), "/"); !f.test && (first == "client" || first == "protocol") {
			byFolder[f.dir()] = append(byFolder[f.dir()], f)
		}
	}
	return byFolder
}

// surface is every exported declaration of a package without its comments and
// bodies, one declaration after the other in the order of their texts. A
// declaration for one system has its file's name before it.
func surface(top string, files []goFile) (string, error) {
	var decls []string
	for _, f := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.Join(top, f.path), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		ast.FileExports(parsed)
		for _, d := range parsed.Decls {
			for _, one := range single(d) {
				var b bytes.Buffer
				if err := format.Node(&b, token.NewFileSet(), one); err != nil {
					return "", err
				}
				decls = append(decls, systemOf(f.path)+b.String())
			}
		}
	}
	slices.Sort(decls)
	return strings.Join(decls, "\n") + "\n", nil
}

// systemOf marks what only one system has.
func systemOf(file string) string {
	for _, system := range []string{"linux", "darwin"} {
		if strings.HasSuffix(file, "_"+system+".go") {
			return "[" + system + "] "
		}
	}
	return ""
}

// single takes a declaration apart, so that moving a constant from one group to
// another is no change.
func single(d ast.Decl) (out []ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !ofExportedType(d) {
			return nil
		}
		d.Body, d.Doc = nil, nil
		return []ast.Decl{d}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				s.Doc, s.Comment = nil, nil
				bare(s)
			case *ast.ValueSpec:
				s.Doc, s.Comment = nil, nil
				if d.Tok == token.VAR { // its value is no promise
					s.Values = nil
				}
			}
			out = append(out, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
		}
	}
	return out
}

// ofExportedType reports that a function is none's method, or a method of a type
// that others can name.
func ofExportedType(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	name, ok := of.(*ast.Ident)
	return !ok || name.IsExported()
}

// bare takes the comments out of a type, those about what is left out included.
func bare(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			n.Incomplete = false
		case *ast.InterfaceType:
			n.Incomplete = false
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		}
		return true
	})
}

// changes are the lines that one text has and the other does not.
func changes(before, after string) (out []string) {
	had, has := strings.Split(before, "\n"), strings.Split(after, "\n")
	for _, line := range had {
		if !slices.Contains(has, line) {
			out = append(out, "gone: "+line)
		}
	}
	for _, line := range has {
		if !slices.Contains(had, line) {
			out = append(out, "new: "+line)
		}
	}
	if len(out) == 0 && before != after {
		out = append(out, "the order of lines, or how often one is there, changed")
	}
	return out
}

func TestSurfaceOfAPackage(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, source, want string }{
		{"what is exported, without bodies and comments", "package p\n// F is.\nfunc F(a int) error { return nil }\nfunc g() {}\n", "func F(a int) error\n"},
		{"a type loses what is its own", "package p\ntype T struct {\n\tA int // yes\n\tb int\n}\nfunc (T) M() {}\nfunc (t *T) m() {}\ntype u int\nfunc (u) M() {}\n", "func (T) M()\ntype T struct{ A int }\n"},
		{"constants with their values, variables without", "package p\nconst (\n\tA = 1\n\tb = 2\n)\nvar V int = 3\n", "const A = 1\nvar V int\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			if err := os.WriteFile(filepath.Join(top, "p.go"), []byte(row.source), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := surface(top, []goFile{{path: "p.go"}})
			if err != nil || got != row.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, row.want)
			}
		})
	}
	t.Run("a change is seen", func(t *testing.T) {
		t.Parallel()
		if got := fmt.Sprint(changes("a\nb\n", "a\nc\n")); got != "[gone: b new: c]" {
			t.Error(got)
		}
	})
	if system := systemOf(path.Join("client", "x_linux.go")); system != "[linux] " {
		t.Errorf("%q", system)
	}
}
