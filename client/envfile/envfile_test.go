package envfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agent/protocol"
)

func TestALinkIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "env")
	if err := os.WriteFile(filepath.Join(dir, "real"), []byte("A=b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	if vars, err := Read(link); protocol.CodeOf(err) != protocol.EnvFileInvalid || !strings.Contains(err.Error(), link+" is a link") {
		t.Errorf("%v, %v", vars, err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       []Var
	}{
		{"nothing", "", nil},
		{"blank lines and comments are skipped", "\n  \n# A=b\n  # c\n", nil},
		{"white space around a line and a value is trimmed", "  A=b  \r\nC= d\n", []Var{{"A", "b"}, {"C", "d"}}},
		{"a leading export is taken off", "export A=b\nexport   C=d\n", []Var{{"A", "b"}, {"C", "d"}}},
		{"one matching pair of quotes is taken off", "A=\"b c\"\nB='x'\nC=\"\"y\"\"\nD=\"z'\nE=\"\n", []Var{{"A", "b c"}, {"B", "x"}, {"C", "\"y\""}, {"D", "\"z'"}, {"E", "\""}}},
		{"there is no escape, expansion or inline comment", "A=$HOME\\n # x\n", []Var{{"A", "$HOME\\n # x"}}},
		{"a value may hold an equals sign", "A=b=c", []Var{{"A", "b=c"}}},
		{"a later line wins", "A=1\nB=2\nA=3\n", []Var{{"B", "2"}, {"A", "3"}}},
		{"an empty value is kept for Fill to pass over", "A=\n", []Var{{"A", ""}}},
		{"a name that begins with an underscore", "_a1=b", []Var{{"_a1", "b"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse("p", []byte(row.text))
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("got %q %v", got, err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, detail string }{
		{"a line that is no assignment", "A=b\n\nsk-secret\n", "p:3 is no NAME=VALUE"},
		{"a name with a dash", "sk-secret=1", "p:1 "},
		{"a name that begins with a digit", "1A=sk-secret", "p:1 "},
		{"a blank before the equals sign", "A =sk-secret", "p:1 "},
		{"no name", "=sk-secret", "p:1 "},
		{"text that is not UTF-8", "A=sk-secret\xff", "not UTF-8"},
		{"a NUL", "A=sk-secret\x00", "NUL"},
		{"a file over 64 KiB", "A=sk-secret" + strings.Repeat("x", MaxSize), "larger than"},
	} {
		t.Run("AP-67 CL-20 "+row.name+" is refused without its text", func(t *testing.T) {
			t.Parallel()
			_, err := Parse("p", []byte(row.text))
			if protocol.CodeOf(err) != protocol.EnvFileInvalid || !strings.Contains(err.Error(), row.detail) || strings.Contains(err.Error(), "sk-secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(t *testing.T, name string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("A=sk-secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, path string
		code       protocol.Code
		vars       int
	}{
		{"a missing file is empty", filepath.Join(dir, "none"), "", 0},
		{"a private file is read", write(t, "good", 0o600), "", 1},
		{"a file others can read", write(t, "loose", 0o640), protocol.EnvFilePermissions, 0},
		{"a file others can run", write(t, "x", 0o601), protocol.EnvFilePermissions, 0},
		{"a folder", dir, protocol.EnvFileInvalid, 0},
		{"a FIFO, without waiting", fifo, protocol.EnvFileInvalid, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			vars, err := Read(row.path)
			if protocol.CodeOf(err) != row.code || len(vars) != row.vars {
				t.Fatalf("got %v %v", vars, err)
			}
			if err != nil && (!strings.Contains(err.Error(), row.path) || strings.Contains(err.Error(), "sk-secret")) {
				t.Errorf("got %v", err)
			}
			if row.code == protocol.EnvFilePermissions && !strings.Contains(err.Error(), "chmod 600") {
				t.Errorf("no way out: %v", err)
			}
		})
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	env := []string{"A=env", "B=", "C=1", "C=2"}
	got := Fill(env, []Var{{"A", "file"}, {"B", "file"}, {"C", "file"}, {"D", "file"}, {"E", ""}})
	if want := []string{"A=env", "C=1", "C=2", "B=file", "D=file"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(env, []string{"A=env", "B=", "C=1", "C=2"}) {
		t.Errorf("the environment was changed: %q", env)
	}
	if Get(env, "C") != "2" || Get(env, "Z") != "" {
		t.Error("Get takes the last entry")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("export A=\"b\"\n# c\nD='e'\n"))
	f.Add([]byte("A"))
	f.Fuzz(func(t *testing.T, text []byte) {
		vars, err := Parse("p", text)
		if err != nil {
			if protocol.CodeOf(err) != protocol.EnvFileInvalid {
				t.Fatal(err)
			}
			return
		}
		names := map[string]bool{}
		for _, v := range vars {
			if !ValidName(v.Name) || names[v.Name] || strings.ContainsAny(v.Value, "\n\x00") {
				t.Fatalf("%q gave %q", text, vars)
			}
			names[v.Name] = true
		}
	})
}
