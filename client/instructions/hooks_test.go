package instructions

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent/protocol"
)

func TestWhatAClientAdds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("home/.agents/AGENTS.md", "Mine.\n")
	w.write("home/.agents/skills/plan/SKILL.md", "Plans\n")
	w.write("home/.agents/skills/quiet/SKILL.md", "\xff")
	o := w.options()
	o.Role, o.BuiltIn = "lead", map[string]string{"lead": "---\ndescription: Leads\n---\n\nYou lead.\n" + EndLine + "\n"}
	o.HiddenSkills = []string{"quiet"}
	o.Standing = "Tasks have worktrees.\n"
	c := w.compose(o)
	t.Run("a built-in role's body, then the standing paragraph, end the text", func(t *testing.T) {
		want := "\n# Role: lead\n\nYou lead.\n " + EndLine + "\n\nTasks have worktrees.\n"
		if !strings.HasSuffix(c.Text, want) {
			t.Errorf("got %s", after(t, c.Text))
		}
		if c.Role == nil || c.Role.Path != "" {
			t.Errorf("the role is %+v", c.Role)
		}
	})
	t.Run("a hidden skill is left out, and is not read", func(t *testing.T) {
		if c.Parts.Skills != 1 || strings.Contains(c.Text, "quiet") {
			t.Errorf("%+v of %s", c.Parts, after(t, c.Text))
		}
	})
	t.Run("the sources are named in order, with their sizes", func(t *testing.T) {
		var layers []string
		sum := 0
		for _, s := range c.Sources {
			layers = append(layers, s.Layer+" "+strings.TrimPrefix(s.Path, w.top))
			sum += s.Bytes
		}
		want := []string{
			"preamble ", "agents /home/.agents/AGENTS.md", "skills /home/.agents/skills/plan/SKILL.md", "role ", "standing ",
		}
		if !slices.Equal(layers, want) || sum != len(c.Text)-len("\n"+EndLine+"\n") {
			t.Errorf("%q, %d of %d bytes", layers, sum, len(c.Text))
		}
	})
	t.Run("a file replaces the built-in role", func(t *testing.T) {
		w := newWorld(t)
		path := w.write("home/.agents/agents/lead.md", "Lead gently.\n")
		o := o
		o.Workspace, o.Home = w.workspace, w.home
		c := w.compose(o)
		if strings.Contains(c.Text, "You lead.") || !strings.Contains(c.Text, "\nLead gently.\n") || c.Role.Path != path {
			t.Errorf("%+v of %s", c.Role, after(t, c.Text))
		}
	})
	t.Run("a role that is neither a file nor built in is not found", func(t *testing.T) {
		o := o
		o.Role = "painter"
		if _, err := Compose(o); protocol.CodeOf(err) != protocol.ProfileNotFound {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a standing paragraph without room is refused", func(t *testing.T) {
		o := o
		o.Standing = strings.Repeat("x", MaxBytes)
		if _, err := Compose(o); protocol.CodeOf(err) != protocol.InstructionsLimit || !strings.Contains(err.Error(), "standing") {
			t.Errorf("got %v", err)
		}
	})
}

func TestListsForAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("code/demo/.agents/skills/both/SKILL.md", "Near.")
	w.write("home/.agents/skills/both/SKILL.md", "\xff")
	w.write("home/.agents/skills/broken/SKILL.md", "\xff")
	w.write("home/.agents/agents/lead.md", "Leads.")
	w.write("home/.agents/commands/fix.md", "---\ndescription: Fixes\n---\nFix $1")
	t.Run("SO-88 the workspace's skill is listed, and the person's of its name is not looked at", func(t *testing.T) {
		list, err := Skills(w.workspace, w.home)
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		if near := filepath.Join(w.workspace, ".agents/skills/both/SKILL.md"); list[0].Path != near || list[0].Err != nil || list[0].Description != "Near." {
			t.Errorf("%+v", list[0])
		}
		if protocol.CodeOf(list[1].Err) != protocol.InstructionsUnreadable {
			t.Errorf("%+v", list[1])
		}
	})
	t.Run("SO-88 and so it is in what is composed", func(t *testing.T) {
		o := w.options()
		o.HiddenSkills = []string{"broken"}
		if c := w.compose(o); c.Parts.Skills != 1 || !strings.Contains(c.Text, "- both: Near. ("+w.workspace) {
			t.Errorf("got %s", after(t, c.Text))
		}
	})
	t.Run("a role of a built-in name is listed", func(t *testing.T) {
		list, err := Roles(w.workspace, w.home)
		if err != nil || len(list) != 1 || list[0].Name != "lead" {
			t.Errorf("%+v, %v", list, err)
		}
	})
	t.Run("files of another folder are found the same way", func(t *testing.T) {
		list, err := Files(w.workspace, w.home, "commands")
		if err != nil || len(list) != 1 || list[0].Name != "fix" || list[0].Description != "Fixes" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.write("home/a.md", "12345678")
	w.link("a.md", "home/link.md")
	for _, row := range []struct {
		name, path string
		most       int
		want       string
		code       protocol.Code
	}{
		{"a file", path, 8, "12345678", ""},
		{"by a link", filepath.Join(w.home, "link.md"), 8, "12345678", ""},
		{"one too large", path, 7, "", protocol.InstructionsLimit},
		{"none", path + "x", 8, "", protocol.InstructionsUnreadable},
		{"a folder", w.home, 8, "", protocol.InstructionsUnreadable},
	} {
		if got, err := ReadFile(row.path, row.most); got != row.want || protocol.CodeOf(err) != row.code {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
	}
}

func TestThePersonsOwnFilesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("home/.agents/AGENTS.md", "Mine.\n")
	w.write("home/.agents/agents/lead.md", "My lead.\n")
	for _, path := range []string{"AGENTS.md", ".agents/skills/theirs/SKILL.md", ".agents/agents/lead.md", ".agents/agents/painter.md"} {
		w.write(strings.TrimPrefix(filepath.Join(w.workspace, path), w.top+"/"), "Theirs.\n")
	}
	o := w.options()
	o.OwnOnly, o.Role = true, "lead"
	if text := w.compose(o).Text; strings.Contains(text, "Theirs.") || strings.Contains(text, "painter") || !strings.Contains(text, "Mine.") || !strings.Contains(text, "My lead.") {
		t.Errorf("got %s", after(t, text))
	}
	o.OwnOnly = false
	if text := w.compose(o).Text; strings.Count(text, "Theirs.") < 2 {
		t.Errorf("the folder has none of it: %s", after(t, text))
	}
}
