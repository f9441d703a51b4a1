package docs

import (
	"bytes"
	"go/ast"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// agent runs the built command in a throwaway home and returns its standard
// output.
func agent(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, "agent", args...)
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(program, name), args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

func TestTheCommandsReferenceIsFresh(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("CLI.md")
	if err != nil {
		t.Fatal(err)
	}
	if agent(t, "reference", "markdown") != string(page) {
		t.Error("docs/CLI.md is not what the command says of itself: run go generate ./docs")
	}
}

func TestTheSettingsReferenceIsFresh(t *testing.T) {
	t.Parallel()
	if output(t, "sonny", "config", "reference") != read(t, "SETTINGS.md") {
		t.Error("docs/SETTINGS.md is not what the command says of its settings: run go generate ./docs")
	}
}

func TestManPages(t *testing.T) {
	t.Parallel()
	pages := manPages(t)
	again := manPages(t)
	wanted := map[string]bool{"agent.1": true}
	for _, verb := range verbsOfHelp(t) {
		wanted["agent-"+verb+".1"] = true
	}
	for name := range wanted {
		if pages[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	for name, text := range pages {
		if !wanted[name] {
			t.Errorf("%s is the page of no verb", name)
		}
		if again[name] != text {
			t.Errorf("%s comes out different each time", name)
		}
		if fault := roffFault(text); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
		formatted(t, name, text)
	}
}

func manPages(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "share", "man", "man1")
	agent(t, "reference", "man", dir)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		pages[f.Name()] = string(text)
	}
	return pages
}

var verbLine = regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)

// verbsOfHelp are the verbs that help lists.
func verbsOfHelp(t *testing.T) []string {
	t.Helper()
	var verbs []string
	for _, m := range verbLine.FindAllStringSubmatch(agent(t, "help"), -1) {
		verbs = append(verbs, m[1])
	}
	if len(verbs) < 20 {
		t.Fatalf("help lists only %v", verbs)
	}
	return verbs
}

var (
	request = regexp.MustCompile(`^\.(TH|SH|PP|TP|RS|RE|nf|fi|br)( |$)`)
	escape  = regexp.MustCompile(`\\(e|-|&|\(ti|\(aq|\(dq|\[u[0-9A-F]{4,6}\]|f[BIR])`)
	date    = regexp.MustCompile(`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}\b`)
)

// roffFault says what of a page a formatter would not read as it was meant.
func roffFault(text string) string {
	if !strings.HasPrefix(text, ".TH ") {
		return "it does not begin with .TH"
	}
	if !regexp.MustCompile(`(?m)^\.SH "NAME"\nagent[a-z\\-]* \\- \S`).MatchString(text) {
		return "it has no name section that whatis reads"
	}
	if date.MatchString(text) {
		return "it bears a date"
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case line == "":
			return "it has an empty line"
		case line[0] == '\'' || line[0] == '.' && !request.MatchString(line):
			return "an unknown request: " + line
		case strings.Contains(escape.ReplaceAllString(line, ""), `\`):
			return "an unknown escape: " + line
		case strings.Count(line, `\fB`)+strings.Count(line, `\fI`) != strings.Count(line, `\fR`):
			return "a font that is not ended: " + line
		}
		for _, c := range line {
			if c < ' ' || c > '~' {
				return "a character that is no ASCII: " + line
			}
		}
	}
	return ""
}

// formatted gives the page to what of mandoc and groff is here, which must have
// nothing to say against it.
func formatted(t *testing.T, name, text string) {
	t.Helper()
	for _, tool := range [][]string{{"mandoc", "-Tlint", "-Werror"}, {"groff", "-man", "-Tascii", "-ww", "-z"}} {
		path, err := exec.LookPath(tool[0])
		if err != nil {
			continue
		}
		cmd := exec.Command(path, tool[1:]...)
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || tool[0] == "groff" && len(out) > 0 {
			t.Errorf("%s of %s: %v: %s", tool[0], name, err, out)
		}
	}
}

func TestRoffFault(t *testing.T) {
	t.Parallel()
	good := ".TH A 1\n.SH \"NAME\"\nagent\\-x \\- does it\n"
	if fault := roffFault(good); fault != "" {
		t.Fatalf("a sound page: %s", fault)
	}
	for _, bad := range []string{"", "text\n", good + ".ZZ\n", good + "'x\n", good + "a\\qb\n", good + "\\fBbold\n", good + "é\n", good + "\n", good + "2026-01-02\n", ".TH A 1\n"} {
		if roffFault(bad) == "" {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestInstallPutsTheManPagesBesideTheProgram(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("make", "-C", "..", "-s", "-n", "install", "PREFIX=/opt/a b", "DESTDIR=/stage")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"'/stage/opt/a b/bin/agent'", "bin/agent reference man '/stage/opt/a b/share/man/man1'"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("make install does not do %s:\n%s", want, out)
		}
	}
}

// TestTheReferenceNamesEveryVariable looks for the variables that the command
// and the client read by name.
func TestTheReferenceNamesEveryVariable(t *testing.T) {
	t.Parallel()
	page := read(t, "CLI.md")
	found := 0
	for _, root := range []string{"../internal/cli", "../client"} {
		for _, name := range variables(t, root) {
			found++
			if name != "AGENT_CHATGPT_ISSUER" && name != "GOGC" && !strings.Contains(page, "`"+name+"`") { // for tests; Go's own
				t.Errorf("CLI.md does not name %s, which %s reads", name, root)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d variables were found: the source was not read", found)
	}
}

// variables are what the Go files below a folder ask the environment for.
func variables(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		ast.Inspect(goFile(t, path), func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if name := text(call.Args[0]); ok && name != "" && (f.Sel.Name == "Getenv" || f.Sel.Name == "LookupEnv") {
				names = append(names, name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
