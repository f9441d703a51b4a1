package screen_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// resting opens Sonny on a lead that has answered once.
func resting(t *testing.T, h *sonnytest.Home, dir string) *sonnytest.Screen {
	t.Helper()
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	send(s, "say: ready")
	s.WaitFor("✔ done")
	return s
}

// turnOf does what begins a turn, and waits for its end on the screen: what it cost is
// in the header.
func turnOf(s screen, begin func()) {
	cost := regexp.MustCompile(`\d+k? in( \(\d+% cached\))? +\d+k? out`)
	before := cost.FindString(s.Capture())
	begin()
	s.Until("a turn and its end", func(screen string) bool {
		return cost.FindString(screen) != before && strings.Contains(screen, "✔ done")
	})
}

// turns is what agent turns says of a bot, in order.
type turn struct {
	Turn     int64
	Status   string
	Prompt   string
	Delivery string
}

func turns(t *testing.T, h *sonnytest.Home, bot string) (list []turn) {
	t.Helper()
	ran := h.Agent("turns", "--bot", bot)
	if err := json.Unmarshal([]byte(ran.Stdout), &list); err != nil {
		t.Fatalf("%v in %s%s", err, ran.Stdout, ran.Stderr)
	}
	return list
}

// own are the bots of the person's: not the judge that is kept warm.
func own(t *testing.T, h *sonnytest.Home) (list []protocol.Bot) {
	t.Helper()
	for _, b := range bots(t, h) {
		if !strings.HasPrefix(b.Name, "approver.") {
			list = append(list, b)
		}
	}
	return list
}

// composed is the composer's first row.
func composed(screen string) string {
	for line := range strings.SplitSeq(screen, "\n") {
		if rest, is := strings.CutPrefix(line, "›"); is {
			return strings.TrimSpace(rest)
		}
	}
	return "no composer"
}

// holds waits for the composer's first row.
func holds(s screen, text string) {
	s.Until("the composer with "+text, func(screen string) bool { return composed(screen) == text })
}

// draftSaved waits for a draft on disk that holds a text.
func draftSaved(h *sonnytest.Home, text string) {
	h.Until("the draft on disk", func() bool {
		files, _ := filepath.Glob(h.Path(".agent", "sonny", "drafts", "*.json"))
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), text) {
				return true
			}
		}
		return false
	})
}

// drawn writes a PNG.
func drawn(t *testing.T, path string, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDraftsOnScreen(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := resting(t, h, dir)

	t.Run("SO-34 F19 what was cleared is in the history", func(t *testing.T) {
		s.Type("half a thought")
		holds(s, "half a thought")
		s.Keys("C-c")
		holds(s, "")
		s.Keys("Up")
		holds(s, "half a thought")
	})

	t.Run("SO-35 F19 a draft outlives a crash", func(t *testing.T) {
		s.Type(" kept")
		draftSaved(h, "half a thought kept")
		s.Kill()
		s = open(h, dir)
		holds(s, "half a thought kept")
	})

	t.Run("a draft belongs to its bot, and the start screen has its own", func(t *testing.T) {
		s.Keys("C-x", "n")
		s.WaitFor("demo.lead-2")
		holds(s, "")
		s.Type("for another")
		holds(s, "for another")
		draftSaved(h, "for another")
		s.Keys("C-c")
		s.Type("/open demo.lead")
		s.Keys("Enter")
		holds(s, "half a thought kept")
		s.Keys("C-c")
	})

	t.Run("SO-36 the stash brings text, picture and paste back after the next send", func(t *testing.T) {
		s.Type("look ")
		s.Paste(strings.Repeat("a line\n", 20))
		s.WaitFor("[pasted 20 lines]")
		s.Paste(drawn(t, h.Path("trace.png"), 412, 96))
		s.WaitFor("[picture 1: trace.png 412×96")
		s.Keys("C-s")
		s.WaitFor("1 stashed")
		holds(s, "")
		send(s, "say: ok")
		wants(t, s, "look [pasted 20 lines][picture 1: trace.png 412×96")
		s.WaitGone("1 stashed")
		s.WaitFor("✔ done")
		s.Keys("C-c")
	})
}

// A daemon may not answer for a while: its disk hangs, or it is stopped.
func TestAMessageThatTheDaemonDoesNotTake(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := resting(t, h, dir)
	daemon, err := os.FindProcess(h.DaemonPID())
	if err != nil {
		t.Fatal(err)
	}
	signal := func(sig os.Signal) {
		t.Helper()
		if err := daemon.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	t.Cleanup(func() { daemon.Signal(syscall.SIGCONT) })
	send(s, "say: x")
	s.WaitFor("sending…  say: x")
	s.Keys("C-d")
	s.Exit()
	signal(syscall.SIGCONT)
	s = open(h, dir)
	s.Until("the message, held or sent", func(screen string) bool {
		return strings.Contains(screen, "held  say: x") || strings.Contains(screen, "› say: x")
	})
}

func TestWhatIsWrittenBeforeTheBotIsThere(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := resting(t, h, dir)
	s.Keys("C-d")
	s.Exit()
	for n := range 3 {
		s = open(h, dir)
		h.Until("the screen", s.Alternate)
		send(s, fmt.Sprintf("say: early %d", n))
		s.Until("the reply", func(screen string) bool {
			return strings.Count(headless(screen), fmt.Sprintf("early %d", n)) == 2 && strings.Contains(screen, "✔ done")
		})
		s.Keys("C-d")
		s.Exit()
	}
	if list := turns(t, h, "demo.lead"); len(list) != 4 {
		t.Errorf("%+v", list)
	}
}

func TestPasting(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := resting(t, h, dir)

	t.Run("SO-37 a long paste is one chip, and nothing of it runs", func(t *testing.T) {
		s.Paste("!rm x\n" + strings.Repeat("another\n", 198) + "the last")
		holds(s, "[pasted 200 lines]")
		if n := len(turns(t, h, "demo.lead")); n != 1 {
			t.Errorf("%d turns", n)
		}
		turnOf(s, func() { s.Keys("Enter") })
		holds(s, "")
		if n := len(turns(t, h, "demo.lead")); n != 2 {
			t.Errorf("%d turns", n)
		}
		history := h.Agent("history", "--bot", "demo.lead").Stdout
		if !strings.Contains(history, `!rm x\n`+strings.Repeat(`another\n`, 198)+"the last") {
			t.Error("the 200 lines were not sent in full")
		}
	})

	t.Run("a paste expands", func(t *testing.T) {
		s.Paste(strings.Repeat("wide\n", 11) + "end of it")
		holds(s, "[pasted 12 lines]")
		s.Keys("C-x", "v")
		s.WaitGone("[pasted 12 lines]")
		s.WaitFor("end of it")
		s.Keys("C-c")
		holds(s, "")
	})

	t.Run("SO-128 what was pasted or recalled does not act", func(t *testing.T) {
		for n, text := range []string{"# Title", "!touch x"} {
			s.Paste(text)
			holds(s, text)
			turnOf(s, func() { s.Keys("Enter") })
			s.Keys("Up")
			holds(s, text)
			turnOf(s, func() { s.Keys("Enter") })
			if got := len(turns(t, h, "demo.lead")); got != 4+2*n {
				t.Errorf("%d turns", got)
			}
		}
		for _, path := range []string{filepath.Join(dir, "x"), h.Path(".agents", "memory")} {
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("%s is there", path)
			}
		}
	})

	t.Run("SO-119 a paste past the daemon's limit is saved and named", func(t *testing.T) {
		var whole strings.Builder
		for i := range 10_000 {
			fmt.Fprintf(&whole, "line %5d and some more words\n", i)
		}
		quick := false
		for try := 0; try < 5 && !quick; try++ { // the machine may be busy
			s.Keys("C-c")
			holds(s, "")
			began := time.Now()
			s.Paste(whole.String())
			holds(s, "[pasted 10000 lines]")
			quick = time.Since(began) < 300*time.Millisecond
		}
		if !quick {
			t.Error("no chip stood within 300 ms")
		}
		s.Type("x")
		holds(s, "[pasted 10000 lines]x")
		before := len(turns(t, h, "demo.lead"))
		s.Keys("Enter")
		wants(t, s, "paste_too_large", "~/.agent/sonny/pastes")
		if n := len(turns(t, h, "demo.lead")); n != before {
			t.Errorf("%d turns", n)
		}
		s.Keys("Enter")
		h.Until("the turn", func() bool { return len(turns(t, h, "demo.lead")) == before+1 })
		files, err := filepath.Glob(h.Path(".agent", "sonny", "pastes", "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("pastes %v, %v", files, err)
		}
		if data, err := os.ReadFile(files[0]); err != nil || string(data) != whole.String() {
			t.Errorf("the file holds %d bytes of %d, %v", len(data), whole.Len(), err)
		}
		if sent := h.Agent("history", "--bot", "demo.lead").Stdout; !strings.Contains(sent, filepath.Base(files[0])) {
			t.Error("the message does not name the file")
		}
	})
}

func TestPicturesInAMessage(t *testing.T) {
	t.Parallel()
	t.Run("SO-39 F13 a dropped picture is a chip that goes whole, and is scaled", func(t *testing.T) {
		h, dir := demo(t)
		s := resting(t, h, dir)
		path := drawn(t, h.Path("wide.png"), 3000, 1000)
		s.Paste(path)
		s.WaitFor("[picture 1: wide.png 2000×666")
		s.Keys("BSpace")
		holds(s, "")
		s.Type("say: seen ")
		s.Paste("'" + path + "'")
		s.WaitFor("[picture 1: wide.png 2000×666")
		s.Keys("Enter")
		s.Until("the reply", func(screen string) bool { return strings.Count(headless(screen), "seen") == 2 })
		kept, err := filepath.Glob(h.Path(".agent", "sonny", "pictures", "*.png"))
		if err != nil || len(kept) == 0 {
			t.Fatalf("%v, %v", kept, err)
		}
		if history := h.Agent("history", "--bot", "demo.lead").Stdout; !strings.Contains(history, "image/png") {
			t.Errorf("no picture in %s", history)
		}
	})

	t.Run("a model that takes none refuses before anything is sent", func(t *testing.T) {
		h, dir := demo(t)
		h.Write(".agent/models", "scripted/sonny # no pictures\n")
		s := resting(t, h, dir)
		s.Type("/image ")
		s.Type(drawn(t, h.Path("small.png"), 40, 10))
		s.Keys("Enter")
		s.WaitFor("[picture 1: small.png 40×10")
		s.Keys("Enter")
		s.WaitFor("takes no pictures")
		s.WaitFor("[picture 1: small.png")
		if n := len(turns(t, h, "demo.lead")); n != 1 {
			t.Errorf("%d turns", n)
		}
	})
}

func TestOwnCommands(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := resting(t, h, dir)

	t.Run("SO-41 a command of the person's own runs outside any bot", func(t *testing.T) {
		s.Type("!echo hi; pwd")
		s.WaitFor("runs as you, in ~/demo")
		s.Keys("Enter")
		s.Until("its output", func(screen string) bool {
			return strings.Contains(screen, "\n    hi") || strings.Contains(screen, "  hi\n")
		})
		wants(t, s, dir, "Tab adds it")
		if n := len(turns(t, h, "demo.lead")); n != 1 {
			t.Errorf("%d turns", n)
		}
		s.Keys("Tab")
		s.WaitFor("[output of echo hi; pwd, 2 lines]")
		turnOf(s, func() { s.Keys("Enter") })
		if history := h.Agent("history", "--bot", "demo.lead").Stdout; !strings.Contains(history, "I ran `echo hi; pwd`") {
			t.Error("the output was not sent")
		}
	})

	t.Run("twice the mark sends the output", func(t *testing.T) {
		turnOf(s, func() { send(s, "!!echo straight") })
	})

	t.Run("Esc ends one that does not end", func(t *testing.T) {
		send(s, "!echo begun; sleep 600")
		wants(t, s, "begun", "Esc ends it")
		s.Keys("Escape")
		s.WaitFor("ended by you")
	})

	t.Run("a fact is saved after its name and scope were shown", func(t *testing.T) {
		send(s, "#The tests need Go 1.26")
		wants(t, s, "the-tests-need-go-1-26", "project demo")
		s.Keys("Escape")
		holds(s, "#The tests need Go 1.26")
		s.Keys("Enter")
		s.WaitFor("scope  project demo")
		s.Keys("Enter")
		s.WaitFor("saved the fact")
		holds(s, "")
		if _, err := os.Stat(h.Path(".agents", "memory", "projects", "demo", "the-tests-need-go-1-26.md")); err != nil {
			t.Error(err)
		}
	})

	t.Run("the menu completes commands, and an unknown one names the nearest", func(t *testing.T) {
		s.Type("/sess")
		s.WaitFor("the sessions of this folder")
		s.Keys("Tab")
		holds(s, "/sessions")
		s.Keys("C-c")
		send(s, "/sesions")
		s.WaitFor("is it /sessions?")
		holds(s, "/sesions")
		s.Keys("C-c")
	})

	t.Run("@ finds files and agents", func(t *testing.T) {
		s.Type("read @agents")
		s.WaitFor("▎ AGENTS.md")
		s.Keys("Tab")
		holds(s, "read @AGENTS.md")
		s.Type("! now")
		turnOf(s, func() { s.Keys("Enter") })
		if history := h.Agent("history", "--bot", "demo.lead").Stdout; !strings.Contains(history, "Be brief.") {
			t.Error("the file is not in the message")
		}
	})

	t.Run("a command of the person's own is a message", func(t *testing.T) {
		h.Write(".agents/commands/greet.md", "---\ndescription: Greets\n---\nsay: hello $1\n")
		s.Keys("C-d")
		s.Exit()
		s = open(h, dir)
		s.WaitFor("demo.lead")
		s.Type("/gre")
		s.WaitFor("Greets")
		s.Keys("Tab")
		s.Type("Ada")
		turnOf(s, func() { s.Keys("Enter") })
		s.WaitFor("hello Ada")
		if n := len(turns(t, h, "demo.lead")); n != 5 {
			t.Errorf("%d turns", n)
		}
	})

	t.Run("what was sent is found again", func(t *testing.T) {
		s.Type("x")
		s.Keys("C-r")
		s.WaitFor("sent before")
		s.Type("ready")
		s.Until("one row", func(screen string) bool { return strings.Contains(screen, "▎ say: ready") })
		s.Keys("Enter")
		holds(s, "say: ready")
	})
}

func TestEditor(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	script := filepath.Join(h.Dir, "edit.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$1\" > \"$HOME/edited\"\nstat -c %a \"$1\" >> \"$HOME/edited\" 2>/dev/null || stat -f %Lp \"$1\" >> \"$HOME/edited\"\nprintf zz >> \"$1\"\nexit ${EDIT_EXIT:-0}\n"), 0o700); err != nil {
		t.Fatal(err)
	}

	left := filepath.Join(h.Path(".agent", "sonny"), "scratch", "left", "message.md")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, []byte("a draft"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("SO-38 F14 the draft in the editor, back unsent", func(t *testing.T) {
		s := h.With("EDITOR="+script).In(dir).Tmux(80, 24, "sonny", "--no-motion", "--theme", "none")
		s.WaitFor("1 AGENTS.md")
		h.Until("what a crash left is removed", func() bool {
			_, err := os.Lstat(left)
			return errors.Is(err, fs.ErrNotExist)
		})
		s.Type("ab")
		holds(s, "ab")
		s.Keys("C-g")
		holds(s, "abzz")
		if list := own(t, h); len(list) != 0 {
			t.Errorf("something was sent: %+v", list)
		}
		data, err := os.ReadFile(h.Path("edited"))
		if err != nil {
			t.Fatal(err)
		}
		path, mode, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
		if mode != "600" || filepath.Ext(path) != ".md" {
			t.Errorf("file %s, mode %s", path, mode)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Error("the file is still there")
		}
		if !strings.HasPrefix(path, h.Path(".agent", "sonny")+"/") {
			t.Errorf("it was %s, which sandboxed agents may write", path)
		}
		draftSaved(h, "abzz")
		pid := s.PID()
		s.KillPane() // while it runs the draft is its own
		h.Until("sonny's end", func() bool { return !running(pid) })
	})

	t.Run("an editor that fails changes nothing", func(t *testing.T) {
		s := h.With("EDITOR="+script, "EDIT_EXIT=1").In(dir).Screen(size, "sonny", "--no-motion", "--theme", "none")
		holds(s, "abzz")
		s.Keys("C-g")
		s.WaitFor("nothing was changed")
		holds(s, "abzz")
	})
}

func TestCaret(t *testing.T) {
	t.Parallel()
	t.Run("SO-40 F15 the cursor stands at the cell of the character", func(t *testing.T) {
		h, dir := demo(t)
		s := h.In(dir).Tmux(80, 24, "sonny", "--no-motion", "--theme", "none")
		s.WaitFor("1 AGENTS.md")
		s.Type("漢字 é 👩‍💻 x")
		s.Until("the text", func(screen string) bool { // some tmux lose the mark before a joined character
			for line := range strings.SplitSeq(screen, "\n") {
				if strings.Contains(line, "漢字") && strings.HasSuffix(line, "x") {
					return true
				}
			}
			return false
		})
		x, _, _ := s.Cursor()
		s.Keys("Left", "Left")
		want := x - 2 // x and the space before it
		s.Until("the cursor two cells left", func(string) bool { at, _, shown := s.Cursor(); return at == want && shown })
		row := ""
		for line := range strings.SplitSeq(s.Capture(), "\n") {
			if strings.Contains(line, "漢字") {
				// A redraw may cost tmux the mark, or put a blank behind the joined character.
				row = strings.Join(strings.Fields(strings.TrimLeft(line, "› ")), " ")
			}
		}
		if row != "漢字 é 👩‍💻 x" {
			t.Errorf("the row is %q", row)
		}
		if x != 2+4+1+1+1+2+1+1 {
			t.Errorf("the end is at column %d", x)
		}
	})

	t.Run("SO-127 the draft outlives its terminal", func(t *testing.T) {
		h, dir := demo(t)
		s := h.In(dir).Tmux(80, 24, "sonny", "--no-motion", "--theme", "none")
		s.WaitFor("1 AGENTS.md")
		s.Type("not yet sent")
		holds(s, "not yet sent")
		pid := s.PID()
		s.KillPane()
		h.Until("sonny's end", func() bool { return !running(pid) })
		again := open(h, dir)
		holds(again, "not yet sent")
	})
}

func TestATaskIsTyped(t *testing.T) {
	t.Parallel()
	t.Run("SO-123 a task starts without a panel in a folder without git", func(t *testing.T) {
		h := sonnytest.Fresh(t)
		dir := h.Path("demo")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		s := open(h, dir)
		s.WaitFor("demo.lead")
		send(s, "say: ready")
		s.WaitFor("✔ done")
		s.Type("&say: hi there friend")
		s.WaitFor("starts the task demo.say-hi-there-friend")
		s.Keys("Enter")
		h.Until("the task's turn", func() bool {
			for _, b := range bots(t, h) {
				if b.Name == "demo.say-hi-there-friend" {
					list := turns(t, h, b.Name)
					return len(list) == 1 && list[0].Status == "completed" && strings.Contains(list[0].Prompt, "say: hi there friend")
				}
			}
			return false
		})
		s.WaitFor("tasks 1")
		if n := len(turns(t, h, "demo.lead")); n != 1 {
			t.Errorf("the lead has %d turns", n)
		}
	})

	t.Run("a setup is shown before it runs", func(t *testing.T) {
		h, dir := demo(t)
		if err := os.MkdirAll(filepath.Join(dir, ".agents"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".agents", "setup"), []byte("touch ran\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		s := resting(t, h, dir)
		send(s, "&say: with setup")
		wants(t, s, "start demo.say-with-setup", "touch ran", "in no sandbox")
		s.Keys("Escape")
		holds(s, "&say: with setup")
		if list := own(t, h); len(list) != 1 {
			t.Errorf("bots: %+v", list)
		}
	})
}

func TestAFullDisk(t *testing.T) {
	t.Parallel()
	if !hasBwrap(t) {
		return // a small file system is made by it alone
	}
	t.Run("SO-126 nothing is lost where nothing can be written", func(t *testing.T) {
		h, dir := demo(t)
		s := onTinyDisk(t, h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: ready")
		s.WaitFor("✔ done")
		send(s, "!cat /dev/zero > ~/.agent/fill")
		s.WaitFor("cat: write error")
		send(s, "say: not lost")
		s.WaitFor("disk full")
		holds(s, "say: not lost")
		s.Keys("C-x", "n") // leaves the draft where it cannot be saved
		s.WaitFor("demo.lead-2")
		s.Type("/open demo.lead")
		s.Keys("Enter")
		holds(s, "say: not lost")
		s.Keys("C-u")
		holds(s, "")
		s.Type("put aside")
		s.Keys("C-s")
		s.WaitFor("1 stashed")
		s.Keys("C-d")
		s.WaitFor("leave again to lose what you wrote: it cannot be saved, disk full")
		s.Keys("C-d")
		s.Exit()
		if strings.Contains(string(s.Raw()), "panic") {
			t.Error("it panicked")
		}
		files, err := filepath.Glob(h.Path("after", "sonny", "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", files, err)
		}
		drafts, _ := filepath.Glob(h.Path("after", "sonny", "drafts", "*.json"))
		for _, path := range append(files, drafts...) {
			if !json.Valid([]byte(readFile(t, path))) {
				t.Errorf("%s is cut", path)
			}
		}
		for line := range strings.Lines(readFile(t, h.Path("after", "sonny", "history"))) {
			if !json.Valid([]byte(line)) {
				t.Errorf("the history is cut at %q", line)
			}
		}
	})

	t.Run("what cannot be kept is named, with why and what to do", func(t *testing.T) {
		h, dir := demo(t)
		kept := h.Path(".agent", "sonny")
		s := resting(t, h, dir)
		s.Keys("C-d")
		s.Exit()
		if err := os.MkdirAll(h.Path(".agents"), 0o700); err != nil {
			t.Fatal(err)
		}
		s = h.In(dir).Screen(sonnytest.Terminal{Width: 160, Height: 30}, "bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--die-with-parent",
			"--ro-bind", kept, kept, "--ro-bind", h.Path(".agents"), h.Path(".agents"), "sonny", "--no-motion", "--theme", "none")
		s.WaitFor("○ idle")
		send(s, "/rename Full")
		s.WaitFor("read-only disk: ~/.agent/sonny/sessions.json could not be written")
		s.Type("#a fact to keep")
		s.Keys("Enter")
		s.WaitFor("Enter saves it")
		s.Keys("Enter")
		s.WaitFor("read-only disk: ~/.agents/")
		holds(s, "#a fact to keep")
		s.Keys("C-u")
		holds(s, "")
		send(s, "/notices")
		s.WaitFor("── notices")
		for _, raw := range []string{".tmp", "memory_invalid", "read-only file system", ".lock"} {
			if screen := s.Capture(); strings.Contains(screen, raw) {
				t.Errorf("it shows %s:\n%s", raw, screen)
			}
		}
	})
}

// hasBwrap reports whether bubblewrap is there, which every Linux has that runs the tests.
func hasBwrap(t *testing.T) bool {
	t.Helper()
	_, err := exec.LookPath("bwrap")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	return err == nil
}

// onTinyDisk opens Sonny with ~/.agent on a file system of its own, of 24 MiB. What Sonny
// keeps is in ~/after when it has ended; ~/.agent/fill is out of the way by then.
func onTinyDisk(t *testing.T, h *sonnytest.Home, dir string) *sonnytest.Screen {
	t.Helper()
	for _, name := range []string{"env", "models", "config.toml"} {
		h.Write("seed/"+name, readFile(t, h.Path(".agent", name)))
	}
	run := h.Write("run.sh", `cp ~/seed/* ~/.agent/ && chmod 700 ~/.agent
sonny --no-motion --theme none; code=$?
mkdir ~/after && rm -f ~/.agent/fill && cp -r ~/.agent/sonny ~/after/
agent shutdown
exit $code
`)
	return h.In(dir).Screen(size, "bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--die-with-parent",
		"--size", fmt.Sprint(24<<20), "--tmpfs", h.Path(".agent"), "sh", run)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestACommandInAFolderThatIsGone(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := open(h, dir)
	s.WaitFor("makes one: demo.lead")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	send(s, "!pwd")
	s.Until("the folder to be named", func(screen string) bool {
		return strings.Contains(screen, "is gone") && !strings.Contains(screen, "fork/exec")
	})
}
