package rules

import (
	"bytes"
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for script, want := range map[string][][]string{
		"git status":                {{"git", "status"}},
		"git status\n":              {{"git", "status"}},
		"a && b || c; d | e\nf":     {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"f"}},
		`echo 'a b' "c d" e'f'"g"`:  {{"echo", "a b", "c d", "efg"}},
		"echo 'a\nb'":               {{"echo", "a\nb"}},
		"git \\\nstatus":            {{"git", "status"}},
		`echo '$x' '\' '*' '~' 'é'`: {{"echo", "$x", `\`, "*", "~", "é"}},
		`echo "é"`:                  {{"echo", "é"}},
		"make A=1":                  {{"make", "A=1"}},
		"echo ''":                   {{"echo", ""}},
		"bash -c 'git status'":      {{"git", "status"}},
		"/usr/bin/sh -c 'a; b'":     {{"a"}, {"b"}},
		`bash -c "bash -c 'ls -l'"`: {{"ls", "-l"}},
		"bash -c 'x' y":             {{"bash", "-c", "x", "y"}},
		"bash -lc 'git x'":          {{"bash", "-lc", "git x"}},
		"zsh -c 'git x'":            {{"zsh", "-c", "git x"}},
		"/tmp/bash -c 'git x'":      {{"/tmp/bash", "-c", "git x"}},
		"a; bash -c 'git x'":        {{"a"}, {"bash", "-c", "git x"}},
		"echo a#b":                  {{"echo", "a#b"}},
		"echo 'a' | 'grep' a":       {{"echo", "a"}, {"grep", "a"}},
		`bash -c 'bash -c "bash -c \"bash -c ls\""'`: nil,
	} {
		got, ok := Plain(script)
		if ok != (want != nil) || ok && !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%q: got %q, %v", script, got, ok)
		}
	}
}

func TestNotPlain(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"", " ", "\n", ":# x #", "# x", "x # y", "$(x)", "`x`", "$V", `"${V}"`, "<(x)", "echo $((1))", "cat <(x)",
		">f", "x >f", "x 2>&1", "x <<E\nE", "x <<<y", "x < f", "x &>f", "A=1 x", "A=1", "a[0]=1", "A+=1 x",
		"x &", "x & y", "! x", "x |& y", "coproc x", "(x)", "{ x; }", "f() { x; }", "function f { x; }",
		"if x; then y; fi", "for i in a; do x; done", "while x; do y; done", "case a in a) x;; esac", "[[ a ]]",
		"((1))", "time x", "let x=1", "declare x", "export A", "readonly A", "local a", "select x in a; do y; done",
		"*.c", "x *.c", "x a?", "x [ab]", "x a{b,c}", "x {}", "~/x", "x ~", "x a=~", "x @(a)", "=ls", "x =ls", "x '='=a =b",
		`r\m x`, `x "\n"`, `x "$"`, `x $'a'`, `x $"a"`, "x $", "'' x", `"" x`, "x é", "x\u00a0y", "x\ry", "x\x00y", "x\x1by", "x '\x7f'", "x '\u0085'",
		"in", "do x", "x; esac", "x '\xff'", "x 'unclosed", "x &&", "&& x", ";", "x ;; y", "until x; do y; done", "bash -c 'A=1 x'", "bash -c ''", "test x = `y`",
	} {
		if got, ok := Plain(script); ok {
			t.Errorf("%q is plain: %q", script, got)
		}
	}
}

// commandsOf is every command that search finds, each joined by blanks.
func commandsOf(script string) (found []string, readable bool) {
	readable = search(script, func(words []string) { found = append(found, strings.Join(words, " ")) })
	return found, readable
}

func TestSearch(t *testing.T) {
	t.Parallel()
	for script, want := range map[string][]string{
		"ls; (r\\m -rf x)":              {"ls", "rm -rf x"},
		"env A=1 rm x":                  {"env A=1 rm x", "rm x"},
		"A=1 rm x":                      {"rm x"},
		"bash -c 'rm x'":                {"bash -c rm x", "rm x"},
		"bash -lc 'rm x'":               {"bash -lc rm x", "rm x"},
		"bash --norc -e -c 'rm x' name": {"rm x"},
		"/bin/rm x":                     {"/bin/rm x"},
		"echo $(rm x)":                  {"echo", "rm x"},
		"echo `rm x`":                   {"rm x"},
		"cat <(rm x)":                   {"rm x"},
		"rm $X y":                       {"rm"},
		"if a; then rm x; fi":           {"a", "rm x"},
		"f() { rm x; }":                 {"rm x"},
		"rm x >f 2>&1 &":                {"rm x"},
		"eval 'rm x'":                   {"rm x"},
		"eval rm x":                     {"rm x"},
		`"r"'m' x`:                      {"rm x"},
		`$'\x72m' x`:                    {"rm x"},
		"sudo -u root rm x":             {"rm x"},
		"sudo -nu root rm x":            {"rm x"},
		"sudo A=1 rm x":                 {"rm x"},
		"doas rm x":                     {"rm x"},
		"nohup nice -n 5 rm x":          {"rm x"},
		"nice -5 rm x":                  {"rm x"},
		"timeout 5 rm x":                {"rm x"},
		"timeout -s KILL 5 rm x":        {"rm x"},
		"timeout --signal KILL 5 rm x":  {"rm x"},
		"timeout --signal=KILL 5 rm x":  {"rm x"},
		"stdbuf -o L rm x":              {"rm x"},
		"stdbuf -oL rm x":               {"rm x"},
		"setsid -f rm x":                {"rm x"},
		"command -p rm x":               {"rm x"},
		"builtin eval 'rm x'":           {"rm x"},
		"exec -a n rm x":                {"rm x"},
		"xargs -n 1 rm x":               {"rm x"},
		"find | xargs rm":               {"rm"},
		"time -p rm x":                  {"rm x"},
		"env -u A -- rm x":              {"rm x"},
		"env -S 'rm x' y":               {"rm x y"},
		"env -S'rm x'":                  {"rm x"},
		"! rm x":                        {"rm x"},
		"A=$(rm x)":                     {"rm x"},
		"export A=$(rm x)":              {"rm x"},
		"cat <<E\n$(rm x)\nE":           {"rm x"},
		"busybox rm x":                  {"rm x"},
		"!(rm x)":                       {"rm x"},
		"eval -- rm x":                  {"rm x"},
		"time -p -- rm x":               {"rm x"},
		"env - A=1 rm x":                {"rm x"},
		"env -- A=1 rm x":               {"rm x"},
		"env -iS 'rm x'":                {"rm x"},
		"env -vS'rm x' y":               {"rm x y"},
		"env --split='rm x'":            {"rm x"},
		"env --split-str 'rm x'":        {"rm x"},
		"bash -co pipefail 'rm x'":      {"rm x"},
		"bash -c -O extglob 'rm x'":     {"rm x"},
		"bash -c +o pipefail 'rm x'":    {"rm x"},
		"timeout --signal KILL --foreground 5 rm x": {"rm x"},
		"xargs -i rm {}":            {"rm {}"},
		"xargs -l rm":               {"rm"},
		`$'rm\0no' x`:               {"rm x"},
		`r$'\c@no'm x`:              {"rm x"},
		`$'\x{72}m' x`:              {"rm x"},
		"cat <<E\na \\\nb\nE\nrm x": {"rm x"},
	} {
		found, readable := commandsOf(script)
		if !readable {
			t.Errorf("%q is not readable", script)
		}
		for _, w := range want {
			if !slices.Contains(found, w) {
				t.Errorf("%q: no %q in %q", script, w, found)
			}
		}
	}
	t.Run("a wrapper's operands are no commands", func(t *testing.T) {
		for _, script := range []string{"timeout 5 grep rm f", "nice -n 10 grep rm f", "env A=1 grep rm f", "xargs -I {} grep rm {}", "sudo -u rm grep x"} {
			found, _ := commandsOf(script)
			if slices.ContainsFunc(found, func(c string) bool { return c == "rm" || strings.HasPrefix(c, "rm ") }) {
				t.Errorf("%q: found %q", script, found)
			}
		}
	})
	t.Run("what cannot be read is said to be", func(t *testing.T) {
		nested := "rm x"
		for range searchDepth + 2 {
			nested = "eval " + nested
		}
		deep := "sudo " + strings.Repeat("sudo ", searchDepth+2) + "rm x"
		for _, script := range []string{
			"rm x\n((", "x 'unclosed", "cat <<E\n\\\nE\nrm x\nE", "cat <<E\n${x:-\nE\nrm x\n}\nE",
			"x\x00y", "x\ry", "x '\xff'", deep, nested,
		} {
			if _, readable := commandsOf(script); readable {
				t.Errorf("%q is readable", script)
			}
		}
	})
}

// FuzzPlain holds the splitter against bash: what it takes for one plain command
// must be one for bash as well, with the same words.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{
		"git status", `echo 'a b' "c d" e'f'"g"`, "a && b || c; d | e", "git \\\nstatus", "x ~", "x a{b,c}", "x [a]",
		"bash -c 'git status'", "x # y", "x $'a'", "if a; then b; fi", "x '\n'", "x !", "x ^", "x %1", "x +(a)", "=x", "x a=b", "x -- -",
		"env A=$HOME x", `env -iS"$X" x`, "timeout $((5)) x", `sudo -$X --a=$X "$@" x`, "{env,A={1..3},x}", "nice [a]* @(x|y) ~ x", `bash -$O "cd $D; x" 'y'`, `eval A=$X "b $(c)"`,
	} {
		f.Add(seed)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Fatal("the test needs bash: ", err)
	}
	f.Fuzz(func(t *testing.T, script string) {
		search(script, func(words []string) {
			if len(words) == 0 {
				t.Error("a command without words")
			}
		})
		commands, ok := plainCommands(script)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		// A restricted shell without programs: what the splitter lets through by
		// mistake cannot do anything.
		run := func(args ...string) ([]byte, error) {
			cmd := exec.CommandContext(ctx, bash, append([]string{"--noprofile", "--norc", "--restricted"}, args...)...)
			cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=/nonexistent", "LC_ALL=C.UTF-8"}
			return cmd.Output()
		}
		if _, err := run("-n", "-c", "--", script); err != nil {
			t.Fatalf("%q is plain, and bash does not parse it: %v", script, err)
		}
		if len(commands) > 1 {
			return
		}
		out, err := run("-c", "--", `printf '%s\0' `+strings.TrimLeft(script, " \t\n"))
		if err != nil {
			t.Fatalf("%q is plain, and bash fails: %v", script, err)
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if !slices.Equal(got, commands[0]) {
			t.Fatalf("%q: bash has the words %q, the splitter %q", script, got, commands[0])
		}
	})
}

func TestANSIC(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`\x72m`: "rm", `\162m`: "rm", `\u0072m`: "rm", `\U00000072m`: "rm", `a\nb`: "a\nb", `\'`: "'", `\q`: `\q`, `\x`: `\x`, `a\`: `a\`, `\cA`: "\x01",
		`\xffz`: "\xffz", `a\0b`: "a", `\x{0000000072}m`: "rm", `\x{}m`: "",
	} {
		if got := ansiC(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	t.Run("as bash decodes it", func(t *testing.T) {
		for _, text := range []string{`\x72m`, `\162\60`, `\u00e9`, `\a\b\e\f\n\r\t\v\\\'\"\?`, `\q\x`, `\cA`, `a\0b`, `a\x00b`, `\x{72}m`, `\x{72m`, `a\c@b`} {
			out, err := exec.Command("bash", "-c", "LC_ALL=C.UTF-8; printf %s $'"+text+"'").Output()
			if err != nil || !bytes.Equal(out, []byte(ansiC(text))) {
				t.Errorf("%q: bash has %q (%v), we %q", text, out, err, ansiC(text))
			}
		}
	})
}
