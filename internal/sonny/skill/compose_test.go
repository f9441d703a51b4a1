package skill

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent/client/instructions"
	"agent/protocol"
)

// folders are a home and a workspace in it, with files named from the home.
func folders(t *testing.T, with map[string]string) (home, work string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work = filepath.Join(home, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range with {
		at := filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home, work
}

func TestComposeOfALead(t *testing.T) {
	t.Parallel()
	home, work := folders(t, map[string]string{
		"work/AGENTS.md": "Be kind.", ".agents/AGENTS.md": "Be brief.",
		".agents/skills/plan/SKILL.md": "Plans.", ".agents/skills/off/SKILL.md": "Off.",
		".agents/agents/tester.md":                 "---\ndescription: Tests\nmodel: a/b\n---\nYou test.",
		".agents/memory/projects/work/MEMORY.md":   "- ci (project, verified 2026-01-02): CI is slow\n",
		".agents/commons/threads/none/thread.json": `{"title":"t","by":"a","made_ms":1}`,
	})
	o := Options{Workspace: work, Home: home, Role: "lead", Tasks: &Tasks{Worktree: true}, Disabled: []string{"off"}}
	c, err := Compose(o)
	if err != nil {
		t.Fatal(err)
	}
	end := "\n\nUnless `start_task` says otherwise, your tasks run on your own model at your own effort, and have a worktree and a branch of their own, made from the last commit: what is not committed is not in it.\n"
	if !strings.Contains(c.Text, "\n# Role: lead\n\nYou are the lead of this folder") || !strings.HasSuffix(c.Text, end) || strings.Contains(c.Text, "Off.") {
		t.Errorf("got %s", c.Text[len(instructions.Preamble()):])
	}
	if got := Notice(c); got != "preamble, 2 AGENTS.md, 1 skill, 1 role, 1 fact, lead" {
		t.Error(got)
	}
	t.Run("the same files give the same bytes", func(t *testing.T) {
		if again, err := Compose(o); err != nil || again.Text != c.Text {
			t.Errorf("they differ, %v", err)
		}
	})
	t.Run("tasks with a model, in the folder", func(t *testing.T) {
		got := Tasks{Model: "a/b", Effort: "high"}.standing()
		if !strings.Contains(got, "run on a/b at effort high, and work in your folder") {
			t.Error(got)
		}
	})
	t.Run("a bot without a role", func(t *testing.T) {
		c, err := Compose(Options{Workspace: work, Home: home})
		if err != nil || c.Role != nil || strings.Contains(c.Text, "start_task` says otherwise") || !strings.HasSuffix(Notice(c), "1 fact") {
			t.Errorf("%s, %v", Notice(c), err)
		}
	})
}

func TestRolesAreErrorsWhenUsed(t *testing.T) {
	t.Parallel()
	home, work := folders(t, map[string]string{
		".agents/agents/open.md":      "---\ndescription: d\n",
		".agents/agents/large.md":     strings.Repeat("x", 61<<10),
		".agents/agents/home.md":      "---\ndescription: Mine\n---\nMy home.",
		"work/.agents/agents/near.md": "\xff",
		".agents/agents/near.md":      "The person's.",
	})
	for _, row := range []struct {
		role string
		code protocol.Code
		says string
	}{
		{"", "", ""},
		{"home", "", ""},
		{"cleanup", "", ""},
		{"open", protocol.InstructionsUnreadable, "open.md"},
		{"large", protocol.InstructionsLimit, "large.md has 62464 bytes"},
		{"none", protocol.ProfileNotFound, "none"},
		{"../x", protocol.InvalidName, "../x"},
	} {
		t.Run("role "+row.role, func(t *testing.T) {
			_, err := Compose(Options{Workspace: home, Home: home, Role: row.role})
			if protocol.CodeOf(err) != row.code || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a workspace's role that cannot be read is not replaced by the person's", func(t *testing.T) {
		_, err := Compose(Options{Workspace: work, Home: home, Role: "near"})
		if protocol.CodeOf(err) != protocol.InstructionsUnreadable || !strings.Contains(err.Error(), work) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("they are listed, and a file stands for a built-in one", func(t *testing.T) {
		rows, err := Roles(work, home)
		var got []string
		for _, r := range rows {
			line := r.Name + " " + r.From
			if r.Error != "" {
				line += " unreadable"
			}
			got = append(got, line)
		}
		want := []string{"cleanup sonny", "home person", "large person", "lead sonny", "near folder unreadable", "open person"}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v", got, err)
		}
		if i := slices.IndexFunc(rows, func(r RoleRow) bool { return r.Name == "cleanup" }); !slices.Equal(rows[i].Tools, []string{"memory", "read"}) {
			t.Errorf("%+v", rows[i])
		}
	})
}

func TestEditableRole(t *testing.T) {
	t.Parallel()
	home, _ := folders(t, nil)
	path, begin, err := EditableRole(home, "lead")
	if err != nil || path != filepath.Join(home, ".agents/agents/lead.md") || begin != BuiltInRoles()["lead"] {
		t.Fatalf("%s, %v: %s", path, err, begin)
	}
	if _, err := os.Lstat(filepath.Dir(path)); err == nil {
		t.Error("it was made before anything was edited")
	}
	if err := KeepRole(home, "lead", begin+"changed\n"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	t.Run("PO-113 a file that is there is the person's and stays as it is", func(t *testing.T) {
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, begin, err := EditableRole(home, "lead")
		text, _ := os.ReadFile(path)
		if err != nil || begin != "" || string(text) != "mine" {
			t.Errorf("%q, %v: %s", begin, err, text)
		}
	})
	t.Run("a role that is nowhere", func(t *testing.T) {
		if _, _, err := EditableRole(home, "painter"); protocol.CodeOf(err) != protocol.ProfileNotFound {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a name that leads elsewhere", func(t *testing.T) {
		if _, _, err := EditableRole(home, "../lead"); protocol.CodeOf(err) != protocol.InvalidName {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a link in its place", func(t *testing.T) {
		if err := os.Symlink("lead.md", filepath.Join(home, ".agents/agents/home.md")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := EditableRole(home, "home"); protocol.CodeOf(err) != codeLeft {
			t.Errorf("got %v", err)
		}
	})
}

func TestCommands(t *testing.T) {
	t.Parallel()
	home, work := folders(t, map[string]string{
		".agents/commands/fix.md":             "---\ndescription: Fixes\nargument-hint: FILE\n---\n\nFix $1.\n",
		"work/.agents/commands/fix.md":        "Fix it here.",
		".agents/commands/open.md":            "---\ndescription: d\n",
		".agents/commands/bad.md":             "\xff",
		".agents/commands/notes.txt":          "no",
		".agents/skills/plan/SKILL.md":        "Plans.",
		".agents/skills/quiet/SKILL.md":       "---\ndisable-model-invocation: true\n---\nQuiet.",
		".agents/skills/hidden/SKILL.md":      "---\nuser-invocable: false\n---\nHidden.",
		".agents/skills/both/SKILL.md":        "A skill.",
		".agents/commands/both.md":            "A template.",
		"work/.agents/skills/nearer/SKILL.md": "A skill.",
		".agents/commands/nearer.md":          "A template.",
	})
	list, err := Commands(work, home)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Command{}
	var names []string
	for _, c := range list {
		byName[c.Name] = c
		names = append(names, c.Name)
	}
	if want := []string{"bad", "both", "fix", "nearer", "open", "plan", "quiet"}; !slices.Equal(names, want) {
		t.Fatalf("%q", names)
	}
	for _, row := range []struct{ name, args, want string }{
		{"fix", "", "Fix it here."},
		{"both", "", "A template."},
		{"nearer", "", "Use the skill nearer (" + work + "/.agents/skills/nearer/SKILL.md)."},
		{"plan", " the move ", "Use the skill plan (" + home + "/.agents/skills/plan/SKILL.md).\n\nthe move"},
	} {
		if got, err := byName[row.name].Message(row.args); err != nil || got != row.want {
			t.Errorf("/%s %s: %q, %v", row.name, row.args, got, err)
		}
	}
	for _, name := range []string{"bad", "open"} {
		if _, err := byName[name].Message(""); protocol.CodeOf(err) != protocol.InstructionsUnreadable {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Run("the home folder's own", func(t *testing.T) {
		list, err := Commands(home, home)
		i := slices.IndexFunc(list, func(c Command) bool { return c.Name == "fix" })
		if err != nil || i < 0 || list[i].Hint != "FILE" || list[i].Description != "Fixes" {
			t.Fatalf("%+v, %v", list, err)
		}
		if got, err := list[i].Message("a.go"); err != nil || got != "Fix a.go." {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestExpand(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, template, args, want string }{
		{"all of them", "Look at $ARGUMENTS now", "a  b", "Look at a  b now"},
		{"words", "$2 before $1", "one two three", "two before one"},
		{"a quoted word", "[$1] [$2]", `"one two" 'three four'`, "[one two] [three four]"},
		{"fewer than places", "[$1][$2]", "one", "[one][]"},
		{"none", "Fix $1 $ARGUMENTS.", "", "Fix  ."},
		{"what is put in is not looked at again", "$1 $2", "$2 $ARGUMENTS", "$2 $ARGUMENTS"},
		{"no shell", "Run $1", "$(id) `id`", "Run $(id)"},
		{"nine places", "$9$10", "a b c d e f g h i j", "ia0"},
		{"a longer word is no place", "$ARGUMENTSX $0 $x", "a", "$ARGUMENTSX $0 $x\n\na"},
		{"no place for what was typed", "Fix it.", "soon", "Fix it.\n\nsoon"},
		{"an open quote", "[$1]", `"one two`, `["one]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := Expand(row.template, row.args); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}
