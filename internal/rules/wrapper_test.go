package rules

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The ways to write a word whose value the text does not say, each one word
// whatever it expands to, and those that may become none or several.
var (
	oneWord = []string{
		`"$X"`, `"${X}"`, `"${X:-5}"`, "\"$(pwd)\"", "\"`pwd`\"", `$((5))`, `"$((1+1))"`, `"$X$Y"`, `"$*"`, `~`, `'5'"$X"`, `<(:)`,
	}
	anyWords = []string{
		`$X`, `${X}`, `${X:-5}`, `$(echo 5)`, "`echo 5`", `$*`, `"$@"`, `"${a[@]}"`, `${a[*]}`, `"${!X}"`, `"${X:-$@}"`, `5$X`, `"5"$X`, `?`, `[0-9]`,
	}
)

func TestExpansionsAmongTheArgumentsOfWrappers(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `prefix_rule(["touch"], decision="forbidden")`)
	forbidden := func(t *testing.T, script string, want bool) {
		t.Helper()
		if v := s.Decide(script); (v.Decision == Forbidden) != want {
			t.Errorf("%.200s: %v (unreadable %v)", script, v.Decision, v.Unreadable)
		}
	}
	// @ stands for the word that expands.
	passed := []string{
		"env A=@ touch f", "env -i A=@ B=1 touch f", "env -u @ touch f", "env --unset=@ touch f", "env -C @ A=@ touch f", "env -- A=@ touch f",
		"nohup env A=@ touch f", "/usr/bin/env A=@ /bin/touch f", "timeout @ touch f", "timeout -s @ 5 touch f", "timeout -k @ @ touch f",
		"timeout --signal=@ 5 touch f", "timeout --signal @ 5 touch f", "timeout -- @ touch f", "nice -n @ touch f", "nice --adjustment=@ touch f",
		"nice --adjustment @ touch f", "stdbuf -o @ touch f", "stdbuf -i@ touch f", "stdbuf --output=@ touch f", "sudo -u @ touch f", "sudo -u@ touch f",
		"sudo A=@ touch f", "sudo A=@ -u @ touch f", "sudo -n --user=@ -- touch f", "doas -u @ touch f", "xargs -n @ touch", "xargs -I@ touch f",
		"xargs --max-args=@ touch f", "xargs -d @ -n 1 touch", "exec -a @ touch f", "command time -o @ touch f", "time -o @ touch f",
		"nice -n @ timeout @ env A=@ touch f", "env A=@ bash -c 'touch f'", "env A=@ sudo -u @ nohup touch f", "A=@ env A=@ touch f",
	}
	for _, script := range []string{
		"env A=$HOME touch A2", `nohup env "A=$HOME" touch A5`, "env A=`pwd` touch A6", "timeout $((5)) touch A4", "nice -n $((1)) touch A9", `env "A=$(pwd)" 'B='"$X" touch f`,
	} {
		forbidden(t, script, true)
	}
	for _, word := range append(oneWord, anyWords...) {
		for _, script := range passed {
			forbidden(t, strings.ReplaceAll(script, "@", word), true)
		}
	}
	// What may be nothing, or an option, leaves the command behind it one.
	for _, word := range anyWords {
		for _, script := range []string{
			"env @ touch f", "nohup @ touch f", "setsid @ touch f", "command @ touch f", "builtin @ command touch f", "exec @ touch f", "nice @ touch f",
			"stdbuf @ touch f", "sudo @ touch f", "doas @ touch f", "xargs @ touch f", "busybox @ touch f", "command time @ touch f", "timeout @ 5 touch f", "timeout 5 @ touch f",
		} {
			if strings.HasPrefix(word, "5") || strings.HasPrefix(word, `"5`) {
				continue // a program of that name
			}
			forbidden(t, strings.ReplaceAll(script, "@", word), true)
		}
	}
	t.Run("the wrapper's own words are no commands", func(t *testing.T) {
		for _, word := range oneWord {
			for _, script := range []string{
				"env A=@ grep touch f", "env -u @ grep touch f", "timeout -s @ 5 grep touch f", "timeout @ grep touch f", "nice -n @ grep touch f",
				"env A=1 grep @ touch f", "bash file @ touch", "sudo -u @ grep touch f", "sudo A=1 -u @ grep touch f", "xargs -n @ grep touch", "stdbuf -o @ grep touch", "exec -a @ grep touch", "nice --adjustment=@ grep touch f",
			} {
				forbidden(t, strings.ReplaceAll(script, "@", word), false)
			}
		}
		for _, word := range []string{`$X`, `$(pwd)`, `~`, `*`, `"$@"`, `{1,2}`} {
			forbidden(t, "env A="+word+" grep touch f", false) // no option follows an assignment
			forbidden(t, "timeout "+word+" grep touch f", false)
		}
	})
	t.Run("a program that is computed matches nothing", func(t *testing.T) {
		for _, script := range []string{"$X touch", `"$X" touch`, "env A=1 $X", `timeout 5 "$X" touch`, "A=$X; grep touch $A", "echo $X touch"} {
			forbidden(t, script, false)
		}
	})
	t.Run("braces are taken apart", func(t *testing.T) {
		for script, want := range map[string]bool{
			"{touch,f}": true, "{,touch} f": true, "{env,A=1,touch,f}": true, "env {A=1,B=2} touch f": true, "env {A=1,touch} f": true, "env A={1,2} touch f": true,
			"timeout {-s,KILL,5} touch f": true, "nice -n{5,6} touch f": true, "{bash,-c,'touch f'}": true, "echo {touch,f}": false, "grep {a,touch} f": false,
			"env {1..999999999999} touch f": false, "env A={1..999999999999} touch f": true, "{1..999999999999} touch": false, "xargs -I {} grep touch {}": false, "env " + strings.Repeat("{", 100_000) + " touch f": true,
		} {
			forbidden(t, script, want)
		}
	})
	t.Run("what splits words may have been changed", func(t *testing.T) {
		forbidden(t, "IFS=1; timeout -s $((910)) touch f", true)
		forbidden(t, "timeout -s $((910)) touch f", false)
	})
}

func TestScriptsWithExpansionsInThem(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `prefix_rule(["touch"], decision="forbidden")`)
	for script, want := range map[string]Decision{
		`bash -c "cd $D && touch f"`:            Forbidden,
		`bash -c "env A=$X touch f"`:            Forbidden,
		`bash $O -c 'touch f'`:                  Forbidden,
		`bash "$O" 'touch f'`:                   Forbidden,
		`bash -$O 'touch f'`:                    Forbidden,
		`bash -c $O 'touch f'`:                  Forbidden,
		`bash -c "$O" 'touch f'`:                Forbidden,
		`bash -o "$O" -c 'touch f'`:             Forbidden,
		`bash -c -o "$O" 'touch f'`:             Forbidden,
		`sudo -u "$U" bash -c "touch $F"`:       Forbidden,
		`eval "A=$X touch f"`:                   Forbidden,
		`eval A=$X touch f`:                     Forbidden,
		`eval "$X; touch f"`:                    Forbidden,
		`eval "eval \"A=\$X touch f\""`:         Forbidden,
		`env -S "A=$X touch f"`:                 Forbidden,
		`env -S "-i touch f"`:                   Forbidden,
		`env -S "$X" touch f`:                   Forbidden,
		`env -iS"$X" touch f`:                   Forbidden,
		`env --split-string="A=$X touch" f`:     Forbidden,
		`env "-$O" 'A=1 touch f'`:               Forbidden,
		`bash -c "echo $X"`:                     None,
		`bash -c "$X"`:                          None,
		`bash "$S" 'a ('`:                       None,
		`eval "$(ssh-agent -s)"`:                None,
		`eval "for $V in a; do grep touch; do"`: None,
		`eval "touch f; for $V in"`:             Forbidden,
		`bash script.sh "$X" grep touch`:        None,
	} {
		if v := s.Decide(script); v.Decision != want {
			t.Errorf("%s: %v, want %v (unreadable %v)", script, v.Decision, want, v.Unreadable)
		}
	}
}

// What an expansion may be never makes a script plain.
func TestExpansionsAllowNothing(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `prefix_rule(["env"])
prefix_rule(["touch"])
prefix_rule(["timeout", "5"])`)
	for _, word := range append(append([]string{"{1,2}", "*"}, oneWord...), anyWords...) {
		for _, script := range []string{"env A=@ touch f", "env @ touch f", "timeout 5 touch @", "touch @", `bash -c "touch @"`} {
			if script = strings.ReplaceAll(script, "@", word); s.Decide(script).Decision != None {
				t.Errorf("%s is allowed", script)
			}
		}
	}
}

// A search that could take long ends, and says that it did not see all.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"wrappers behind expansions":      strings.Repeat("sudo $X --a ", 30_000),
		"wrappers behind an expansion":    "sudo $X " + strings.Repeat("sudo --a ", 30_000),
		"scripts behind expansions":       strings.Repeat("sudo $X eval ", 5_000),
		"strings that env takes apart":    "env " + strings.Repeat("-S ", 50_000),
		"strings that env may take apart": "env " + strings.Repeat("$X ", 50_000),
		"options of a shell":              "bash " + strings.Repeat(`"$X" `, 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			search(script, func([]string) {})
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
	if readable := search(strings.Repeat("sudo $X --a ", 30_000), func([]string) {}); readable {
		t.Error("a search over its bound says that it saw all")
	}
	long := strings.Repeat("nice -n $((1)) timeout 5 grep x; env A=$HOME make all\n", 10_000)
	if readable := search(long, func([]string) {}); !readable {
		t.Error("a long script of plain uses is over the bound")
	}
}

// What bash and the real wrappers run is what a forbidden rule sees, for any value
// of what expands.
func TestWrappersAsTheyRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mark"), []byte("#!/bin/sh\n: >\"$MARK\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := mustParse(t, `prefix_rule(["mark"], decision="forbidden")`)
	ran := 0
	values := []string{"", "-i", "-n", "-k 5 5", "A=1", "5", "-c"}
	for _, wrapped := range []string{
		"env @ mark", "env A=@ mark", "env -u @ mark", "env @ A mark", "env -@ mark", "env --@ mark", "env -S @ mark", "env -S\"A=@ mark\"", "nice @ mark", "nice -n @ mark", "nice -@ mark", "nice @ 5 mark",
		"timeout @ mark", "timeout @ 5 mark", "timeout -s @ 5 mark", "timeout -@ 5 mark", "timeout @ 5 5 mark", "timeout 5 @ mark", "nohup @ mark", "nohup env A=@ mark",
		"command @ mark", "exec @ mark", "exec -a @ mark", "eval @ mark", "eval A=@ mark", "eval A=1 @ mark", "time env A=@ mark", "bash @ mark", "bash @ -c mark", "bash -@ mark", "bash -c \"A=@ mark\"", "bash -c @ mark",
	} {
		for _, word := range []string{"$X", `"$X"`, "${X:-5}", "$(echo 5)", "$((5))", "{A=1,B=1}", "~", `"$@"`} {
			for i, value := range values {
				if !strings.Contains(word, "X") && i > 0 {
					break
				}
				script := strings.ReplaceAll(wrapped, "@", word)
				mark := filepath.Join(dir, "ran")
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-c", script)
				cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + dir, "MARK=" + mark, "X=" + value}
				cmd.Run() // that most of them fail is nothing to this test
				cancel()
				if os.Remove(mark) != nil {
					continue
				}
				ran++
				if v := s.Decide(script); v.Decision != Forbidden {
					t.Errorf("%s, with %q, ran: %v", script, value, v.Decision)
				}
			}
		}
	}
	if ran < 100 {
		t.Errorf("only %d of the scripts ran", ran)
	}
}
