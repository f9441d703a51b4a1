package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agent/client/envfile"
	"agent/protocol"
)

func TestEnv(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, before, variable, value, after string }{
		{"into nothing", "", "A", "b c", "A=\"b c\"\n"},
		{"in the place of the last, which stays the only one", "# keys\nA=1\r\n\nexport A='x' \r\nB=2", "A", "n", "# keys\n\nexport A=\"n\"\r\nB=2"},
		{"behind a line without an end", "B=2", "A", "n", "B=2\nA=\"n\"\n"},
		{"quotes are kept as they are", "", "A", `"q'`, "A=\"\"q'\"\n"},
		{"a comment that looks like an assignment stays", "#A=1\n", "A", "n", "#A=1\nA=\"n\"\n"},
		{"blanks at its ends are kept", "", "A", " x ", "A=\" x \"\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "env")
			if row.before != "" {
				if err := os.WriteFile(path, []byte(row.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := SetEnv(path, row.variable, row.value); err != nil {
				t.Fatal(err)
			}
			if got := text(t, path); got != row.after {
				t.Errorf("%q", got)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Error(info, err)
			}
			vars, err := envfile.Read(path)
			if i := slices.IndexFunc(vars, func(v envfile.Var) bool { return v.Name == row.variable }); err != nil || i < 0 || vars[i].Value != row.value {
				t.Errorf("%v, %v", vars, err)
			}
		})
	}
}

func TestUnsetEnv(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "env")
	if there, err := UnsetEnv(path, "A"); there || err != nil {
		t.Error(there, err)
	}
	if err := os.WriteFile(path, []byte("# A\nA=1\nB=2\nexport A=3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if there, err := UnsetEnv(path, "A"); !there || err != nil || text(t, path) != "# A\nB=2\n" {
		t.Errorf("%v, %v, %q", there, err, text(t, path))
	}
}

func TestAnEnvFileThatIsRefusedIsNotEdited(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		mode       os.FileMode
		variable   string
		value      string
		code       protocol.Code
		words      string
	}{
		{"one that others may read", "A=1\n", 0o644, "B", "hunter2", protocol.EnvFilePermissions, "chmod 600"},
		{"one with a bad line", "A=1\nhunter3\n", 0o600, "B", "hunter2", protocol.EnvFileInvalid, ":2 "},
		{"one that is full", strings.Repeat("#", envfile.MaxSize-5) + "\n", 0o600, "B", "hunter2", protocol.EnvFileInvalid, "longer than 65536 bytes"},
		{"a bad name", "", 0o600, "1B", "hunter2", protocol.UsageError, "no name of a variable"},
		{"an empty value", "", 0o600, "B", "", protocol.UsageError, "sonny env unset B"},
		{"two lines", "", 0o600, "B", "hunter2\nx", protocol.UsageError, "one line"},
		{"no UTF-8", "", 0o600, "B", "hunter2\xff", protocol.UsageError, "UTF-8"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "env")
			if err := os.WriteFile(path, []byte(row.text), row.mode); err != nil {
				t.Fatal(err)
			}
			chmod(t, path, row.mode)
			err := SetEnv(path, row.variable, row.value)
			wants(t, err, row.code, row.words)
			if strings.Contains(err.Error(), "hunter") {
				t.Errorf("a value is shown: %v", err)
			}
			if text(t, path) != row.text {
				t.Error("the file changed")
			}
		})
	}
}

// The file's part of SO-105: a name that the environment gives another value keeps
// that, and the file's is known to be hidden.
func TestHiddenEnv(t *testing.T) {
	t.Parallel()
	vars := []envfile.Var{{Name: "A", Value: "file"}, {Name: "B", Value: "same"}, {Name: "C", Value: "file"}, {Name: "D", Value: ""}, {Name: "E", Value: "file"}}
	environ := []string{"A=environment", "B=same", "D=x", "E="}
	if got := HiddenEnv(vars, environ); !slices.Equal(got, []string{"A"}) {
		t.Errorf("%v", got)
	}
	if filled := envfile.Fill(environ, vars); envfile.Get(filled, "A") != "environment" || envfile.Get(filled, "E") != "file" {
		t.Errorf("%v", filled)
	}
}

// Whatever is set and unset, the file reads as a map would, each name stands once that
// was touched, and every line that assigns nothing stays.
func TestAnyEditsOfEnvAreWhatAMapDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, rapid.StringMatching(`[a-z]{16}`).Draw(t, "file"))
		before := rapid.SampledFrom([]string{"", "# c\nA=1\n", "A=1\nA=2\r\n# c\n\nexport B='x'", "B=\n# c"}).Draw(t, "before")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		want := map[string]string{}
		vars, _ := envfile.Read(path)
		for _, v := range vars {
			want[v.Name] = v.Value
		}
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			name := rapid.SampledFrom([]string{"A", "B", "AB"}).Draw(t, "name")
			if value := rapid.StringMatching(`[ -~]{0,12}`).Draw(t, "value"); value != "" {
				want[name] = value
				if err := SetEnv(path, name, value); err != nil {
					t.Fatal(err)
				}
			} else {
				_, had := want[name]
				delete(want, name)
				if there, err := UnsetEnv(path, name); err != nil || there != had {
					t.Fatal(there, err)
				}
			}
			data, _ := os.ReadFile(path)
			if n := strings.Count("\n"+string(data), "\n"+name+"="); n > 1 {
				t.Fatalf("%s stands %d times in %q", name, n, data)
			}
		}
		got, err := envfile.Read(path)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%v, want %v, %v", got, want, err)
		}
		for _, v := range got {
			if want[v.Name] != v.Value {
				t.Fatalf("%v, want %v", got, want)
			}
		}
		if data, _ := os.ReadFile(path); strings.Contains(before, "# c") != strings.Contains(string(data), "# c") {
			t.Fatalf("a comment is gone: %q", data)
		}
	})
}
