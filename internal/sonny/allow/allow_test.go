package allow

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent/internal/rules"
	"agent/protocol"
)

func file(text string) *protocol.Rules {
	return &protocol.Rules{Files: []protocol.RuleFile{{Name: "own.rules", Text: text}}}
}

func TestOffer(t *testing.T) {
	t.Parallel()
	none := &protocol.Rules{}
	for _, c := range []struct {
		name, script string
		have         *protocol.Rules
		want         string // "": none
	}{
		{"SO-17 the first three words of a command", "git push origin v1", none, "git push origin"},
		{"a shorter command whole", "make lint", none, "make lint"},
		{"one word that runs nothing else", "date", none, "date"},
		{"a quoted word keeps what it is", `git commit -m "a message"`, none, "git commit -m"},
		{"commands with the same beginning", "git push origin v1 && git push origin v2", none, "git push origin"},
		{"commands of which the others are allowed already", "ls | wc -l", file(`prefix_rule(pattern=["ls"])`), "wc -l"},
		{"python's module", "python3 -m pytest -q", none, "python3 -m pytest"},

		{"SO-18 none for a shell that runs another command", `bash -c "git push"`, none, ""},
		{"none for a program that runs what it is told, alone", "node", none, ""},
		{"none for a launcher alone, by its path", "/usr/bin/env", none, ""},
		{"none for a version of an interpreter", "python3.12 -c 'x'", none, ""},
		{"none for an interpreter's command", `perl -e "x"`, none, ""},
		{"none for options of a wrapper", "timeout -k 5 rm", none, ""},
		{"none for git's options", "git -C /elsewhere push", none, ""},
		{"none for what is not plain", "touch ~/outside", none, ""},
		{"none for a redirection", "echo x > y", none, ""},
		{"none for commands without a beginning in common", "git add . && git commit -m x", none, ""},
		{"none where another rule asks", "git push origin", file(`prefix_rule(pattern=["git", "push"], decision="prompt")`), ""},
		{"none where another rule forbids", "git push origin", file(`prefix_rule(pattern=["git"], decision="forbidden")`), ""},
		{"none for what is allowed already", "date", file(`prefix_rule(pattern=["date"])`), ""},
		{"none beside rules that do not parse", "date", file("prefix_rule("), ""},
		{"none beside rules that are unreadable", "date", &protocol.Rules{Unreadable: true, Reason: "x"}, ""},
	} {
		if got := strings.Join(Offer(c.have, c.script), " "); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

func TestEveryRunnerNeedsMoreWords(t *testing.T) {
	t.Parallel()
	for _, name := range runners {
		if Check(&protocol.Rules{}, []string{name}, name+" x") == nil {
			t.Errorf("%s alone would be a rule", name)
		}
		for _, option := range []string{"-c", "-e", "-lc", "-r"} {
			if Check(&protocol.Rules{}, []string{name, option}, name+" "+option+" x") == nil {
				t.Errorf("%s %s would be a rule", name, option)
			}
		}
	}
}

func TestWordsAsTheyAreTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed string
		want  []string // nil: refused
	}{
		{"git push", []string{"git", "push"}},
		{`say "two words" 'and $three'`, []string{"say", "two words", "and $three"}},
		{"git push; rm x", nil},
		{"git $x", nil},
		{"", nil},
		{"git > x", nil},
	} {
		got, err := Words(c.typed)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %q, %v", c.typed, got, err)
		}
	}
}

func TestARuleInItsLanguage(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{
		{"git", "push"},
		{"say", `"quoted"`, `back\slash`, "two words", "tab\there", "line\nbreak", "ünï", "\u202e", "\U000e0041", "$x `y`"},
	} {
		line := Rule{Decision: "prompt", Words: words, Why: `the "why"`}.Line()
		set, err := rules.Parse([]rules.File{{Name: "x.rules", Text: line}})
		if err != nil || len(set.Rules()) != 1 || set.Rules()[0].Decision != rules.Prompt || set.Rules()[0].Justification != `the "why"` {
			t.Errorf("%q: %v in %s", words, err, line)
			continue
		}
		for i, alternatives := range set.Rules()[0].Pattern {
			if len(alternatives) != 1 || alternatives[0] != words[i] {
				t.Errorf("%q came back as %q", words[i], alternatives)
			}
		}
	}
}

func TestFilesOfRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := Place{Rules: filepath.Join(dir, "rules"), Sessions: filepath.Join(dir, "sonny", "rules")}
	if err := os.Mkdir(filepath.Join(dir, "sonny"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Write(Session, 7, []string{"git", "push"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Write(Session, 7, []string{"date"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(Everywhere, 7, []string{"ls"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(p.File(Everywhere, 0))
	if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(p.File(Everywhere, 0)) != p.Rules {
		t.Errorf("%v, %v", info, err)
	}
	for _, c := range []struct {
		name  string
		bot   int64
		files []string
		rules int
	}{
		{"a lead has the person's rules and its session's", 7, []string{"sonny.rules", "session.rules"}, 3},
		{"another lead has the person's alone", 8, []string{"sonny.rules"}, 1},
		{"so has one that is yet to be made", 0, []string{"sonny.rules"}, 1},
	} {
		list := p.Read(c.bot)
		var names []string
		for _, f := range list.Files {
			names = append(names, f.Name)
		}
		set, err := parse(list, nil)
		if err != nil || !slices.Equal(names, c.files) || len(set.Rules()) != c.rules {
			t.Errorf("%s: %v, %v", c.name, names, err)
		}
	}
	if err := p.Forget(7); err != nil || len(p.Read(7).Files) != 1 {
		t.Errorf("after it was forgotten: %+v, %v", p.Read(7), err)
	}
}

func TestFilesThatAreNoRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := Place{Rules: filepath.Join(dir, "rules"), Sessions: filepath.Join(dir, "sessions")}
	for _, sub := range []string{p.Rules, p.Sessions} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("prefix_rule(pattern=[\"x\"])\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, p.File(Session, 1)); err != nil {
		t.Fatal(err)
	}
	if list := p.Read(1); !list.Unreadable || !strings.Contains(list.Reason, p.File(Session, 1)) {
		t.Errorf("a link is read as rules: %+v", list)
	}
	if err := p.Write(Session, 1, []string{"date"}); err == nil {
		t.Error("a link was written through")
	}
	if text, _ := os.ReadFile(target); strings.Contains(string(text), "date") {
		t.Error("the link's target was written")
	}
	if err := os.WriteFile(p.File(Session, 2), []byte(strings.Repeat("#", protocol.MaxRuleText)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(Session, 2, []string{"date"}); protocol.CodeOf(err) != protocol.RulesLimit {
		t.Errorf("past the bound: %v", err)
	}
	if err := os.WriteFile(p.File(Everywhere, 0), []byte("prefix_rule(\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(Session, 3, []string{"date"}); protocol.CodeOf(err) != protocol.InvalidRules || !strings.Contains(err.Error(), "sonny.rules:") {
		t.Errorf("beside a file that does not parse: %v", err)
	}
}

func TestRulesThatOthersMayHaveWritten(t *testing.T) {
	t.Parallel()
	rule := []byte("prefix_rule(pattern=[\"touch\"])\n")
	for name, plant := range map[string]func(t *testing.T, dir string){
		"PO-46 a link to where an agent writes": func(t *testing.T, dir string) {
			elsewhere := filepath.Join(t.TempDir(), "my.rules")
			if os.WriteFile(elsewhere, rule, 0o600) != nil || os.Symlink(elsewhere, filepath.Join(dir, "my.rules")) != nil {
				t.Fatal("not planted")
			}
		},
		"a file that others may write": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "my.rules")
			if os.WriteFile(path, rule, 0o600) != nil || os.Chmod(path, 0o666) != nil {
				t.Fatal("not planted")
			}
		},
		"a folder that others may write": func(t *testing.T, dir string) {
			if os.WriteFile(filepath.Join(dir, "my.rules"), rule, 0o600) != nil || os.Chmod(dir, 0o777) != nil {
				t.Fatal("not planted")
			}
		},
		"another's file": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "my.rules")
			if err := os.WriteFile(path, rule, 0o600); err != nil {
				t.Fatal(err)
			}
			if os.Chown(path, 12345, 12345) != nil {
				t.Skip("only root gives a file away")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "rules")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			plant(t, dir)
			if r, err := ReadFolder(dir); err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("it is taken: %+v, %v", r, err)
			}
			if r := (Place{Rules: dir}).Read(0); !r.Unreadable {
				t.Errorf("sent as %+v", r)
			}
		})
	}
	linked := filepath.Join(t.TempDir(), "rules")
	if err := os.Symlink(t.TempDir(), linked); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFolder(linked); err == nil {
		t.Error("a link is taken for the folder")
	}
	if r, err := ReadFolder(filepath.Join(t.TempDir(), "none")); err != nil || len(r.Files) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
