// The demo: a bot that is confined to a small project mends its failing test and
// fails to write beside it, and a second one loses its daemon to kill -9 in the
// middle of a command. It needs no key and
// no network: the model's words come from script.json, while the daemon, the
// store, the tools and the project are real. Every claim it prints it has
// checked; one that does not hold ends it with exit 1.
//
//	go run ./demo -agent bin/agent
package main

import (
	"bufio"
	"context"
	"embed"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

//go:embed script.json
var script []byte

//go:embed testdata/project
var project embed.FS

//go:embed ending.txt
var ending string

func main() {
	agent := flag.String("agent", "bin/agent", "the program to show")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := play(ctx, *agent, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo: FAILED:", err)
		os.Exit(1)
	}
}

// play is the whole demo. Its throwaway home and its daemon are gone when it
// returns.
func play(ctx context.Context, agent string, out io.Writer) error {
	s, err := newStage(ctx, agent, out)
	if err != nil {
		return err
	}
	defer s.close()
	for _, act := range []func(*stage) error{makeProject, mend, stayInside, startLongWork, killDaemon, comeBack, leave} {
		if err := act(s); err != nil {
			return err
		}
	}
	s.say("%s", ending)
	return nil
}

// makeProject copies the project out, makes it a git repository, and sees its
// test fail.
func makeProject(s *stage) error {
	s.heading("1. A small project with a failing test, in a throwaway home")
	if err := os.WriteFile(filepath.Join(s.home, "script.json"), script, 0o600); err != nil {
		return err
	}
	if err := copyProject(s.project); err != nil {
		return err
	}
	for _, line := range []string{
		"go mod init example.com/hours", "git init -q -b main", "git add .",
		"git -c user.name=demo -c user.email=demo@example.com commit -q -m start",
	} {
		words := strings.Fields(line)
		if r, err := s.quiet(words[0], words[1:]...); err != nil || r.code != 0 {
			return fmt.Errorf("%s: exit %d: %v %s", line, r.code, err, r.out)
		}
	}
	r, err := s.show("go", "test", "./...")
	if err != nil {
		return err
	}
	return hold(r.code != 0 && strings.Contains(r.out, `Format(90) is "1:90", want "1:30"`),
		"the project's test fails before anybody mends it")
}

func copyProject(to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	const from = "testdata/project"
	entries, err := fs.ReadDir(project, from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := project.ReadFile(path.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// mend lets the first bot work, in the view for people.
func mend(s *stage) error {
	s.heading("2. A new bot mends it, confined to the project (scripted words, real daemon, tools and sandbox)")
	// The throwaway home lies below /tmp, which a bot may write unless told.
	r, err := s.show("agent", "run", "--pretty", "--new", "--bot", "fixer", "--model", "demo/fixer",
		"--tools", "shell,read,edit", "--sandbox", "workspace-write", "--slash-tmp", "off", "Fix the failing test")
	if err != nil {
		return err
	}
	if err := s.noteDaemon(); err != nil {
		return err
	}
	if strings.Contains(r.out, "sandbox_unavailable") {
		return errors.New("this machine cannot confine a bot, and the demo does not run one unconfined; what is missing stands above")
	}
	if err := hold(r.code == 0 && strings.Contains(r.out, "completed"), "the turn completed"); err != nil {
		return err
	}
	if err := hold(strings.Contains(r.out, "▸ shell go test ./...") && strings.Contains(r.out, `Format(90) is "1:90", want "1:30"`),
		"the bot saw the test fail before it changed anything"); err != nil {
		return err
	}
	r, err = s.show("git", "diff", "--unified=0")
	if err != nil {
		return err
	}
	if err := hold(strings.Contains(r.out, "minutes/60, minutes%60)") && strings.Count(r.out, "diff --git") == 1,
		"one file changed, in the place the bot named"); err != nil {
		return err
	}
	r, err = s.show("go", "test", "./...")
	if err != nil {
		return err
	}
	return hold(r.code == 0, "the test passes, run by the demo itself")
}

// stayInside shows that what the bot tried to write beside the project is not
// there.
func stayInside(s *stage) error {
	s.heading("3. It tried to write beside the project, and could not")
	r, err := s.quiet("agent", "history", "--bot", "fixer", "--search", "escaped.txt: ")
	if err != nil {
		return err
	}
	if err := hold(r.code == 0 && strings.Contains(r.out, "escaped.txt: "), "the shell said why it could not write"); err != nil {
		return err
	}
	if r, err = s.show("ls", "../escaped.txt"); err != nil {
		return err
	}
	_, err = os.Lstat(filepath.Join(s.home, "escaped.txt"))
	if err := hold(r.code != 0 && errors.Is(err, fs.ErrNotExist), "escaped.txt is not there"); err != nil {
		return err
	}
	s.say("  escaped.txt is not there: outside its folder the bot's commands find everything read-only.")
	return nil
}

// noteDaemon learns which process the daemon is.
func (s *stage) noteDaemon() error {
	var ready struct {
		PID     int
		Started bool
	}
	if err := s.ask(&ready, "start"); err != nil {
		return err
	}
	s.daemon = ready.PID
	return hold(ready.PID > 1 && !ready.Started, "a daemon runs already, process %d", ready.PID)
}

// hold ends the demo when a claim does not hold.
func hold(ok bool, format string, args ...any) error {
	claim := fmt.Sprintf(format, args...)
	if !ok {
		return fmt.Errorf("it does not hold that %s", claim)
	}
	return nil
}

// An event is a line of a stream. Durable ones, which a crash may not take
// back, have a cursor and data; live ones lack one or the other.
type event struct {
	Cursor int64           `json:"cursor"`
	Turn   int64           `json:"turn"`
	Kind   string          `json:"event"`
	Data   json.RawMessage `json:"data"`
}

// watch follows a bot until an event of the kind whose data holds the text,
// and returns the durable events up to there.
func (s *stage) watch(bot, kind, text string) ([]event, error) {
	cmd, cancel := s.command("agent", "follow", "--bot", bot, "--no-deltas")
	defer cancel()
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		// It follows on until the turn ends; what was to be seen has been.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var seen []event
	for scan := bufio.NewScanner(lines); scan.Scan(); {
		var e event
		if err := decode(scan.Text(), &e); err != nil {
			return nil, err
		}
		if e.Cursor > 0 && e.Data != nil {
			seen = append(seen, e)
		}
		if e.Kind == kind && strings.Contains(string(e.Data), text) {
			return seen, nil
		}
	}
	return nil, fmt.Errorf("following %s ended before %s with %q", bot, kind, text)
}
