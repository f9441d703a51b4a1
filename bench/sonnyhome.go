package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"agent/client"
	"agent/protocol"
)

// sonnyHome is a person's home in which Sonny is measured: a provider that plays a script,
// a repository, and the daemon that Sonny starts there.
type sonnyHome struct {
	b      *bench
	dir    string
	client *client.Client
}

// The lead of the repository, and its project.
const (
	sonnyProject = "demo"
	sonnyLead    = sonnyProject + ".lead"
)

// What is written is only what changes on the screen, letter by letter, so that what is
// waited for is a letter that is in one place alone.
const (
	oldestMark  = "ɐ" // of the oldest question
	newestMark  = "ʁ" // of the end of each usual reply
	longMark    = "ʎ" // of the end of a long one
	streamsMark = "ʬ" // of what streams
	printedMark = "ʛ" // of the reply to a result of 5 MiB
)

// The prompts that the model knows.
const (
	firstPrompt  = oldestMark + " the oldest question"
	nextPrompt   = "another question"
	longPrompt   = "say much"
	streamPrompt = "stream"
	silentPrompt = "say nothing yet"
	printPrompt  = "print much"
)

// printMuch prints 5 MiB in lines as wide as code.
const printMuch = `yes 'func flush(w io.Writer) error { return write(w, pending) } // of what is pending' | head -c 5242880`

// The replies that stream: a word every 20 ms, 50 a second, as a fast provider's.
const (
	streamPaceMS = 20
	streamWords  = 3000 // a minute of them
)

// sonnySession says what the lead of a home has behind it.
type sonnySession struct {
	turns int // in all
	lines int // of each reply
	long  int // lines of the reply to longPrompt, 0: there is none
}

// sonnyHome makes a home with a lead that has that session. Its daemon runs, as Sonny
// has started it.
func (b *bench) sonnyHome(ctx context.Context, s sonnySession) (*sonnyHome, error) {
	dir, err := os.MkdirTemp(b.dir, "sonny-")
	if err != nil {
		return nil, err
	}
	h := &sonnyHome{b: b, dir: dir}
	target, err := client.Resolve(h.path(".agent", "state.sqlite"), "")
	if err != nil {
		return nil, err
	}
	h.client = &client.Client{Target: target}
	err = h.settle(ctx, s)
	if err == nil {
		err = h.begin(ctx)
	}
	if err == nil {
		err = h.fill(ctx, s.turns)
	}
	if err != nil {
		return nil, errors.Join(err, h.close(ctx))
	}
	return h, nil
}

func (h *sonnyHome) path(elem ...string) string {
	return filepath.Join(append([]string{h.dir}, elem...)...)
}

// settle writes the files: settings, the script, a repository with one commit.
func (h *sonnyHome) settle(ctx context.Context, s sonnySession) error {
	script, err := json.Marshal(sonnyScript(s))
	if err != nil {
		return err
	}
	repo := h.path(sonnyProject)
	for _, dir := range []string{repo, h.path(".agent")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	for path, text := range map[string]string{
		h.path("script.json"):           string(script),
		h.path(".gitconfig"):            "[user]\n\tname = Ada\n\temail = ada@example.com\n",
		h.path(".agent", "env"):         "AGENT_PROVIDER=scripted=scripted," + h.path("script.json") + "\n",
		h.path(".agent", "models"):      "scripted/sonny\n",
		h.path(".agent", "config.toml"): "model = \"scripted/sonny\"\njudge_model = \"scripted/sonny\"\ntrust_folders = \"always\"\n",
		filepath.Join(repo, "notes.md"): "Notes.\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"}, {"commit", "--quiet", "--message", "begin"}} {
		if err := h.run(ctx, "git", args...); err != nil {
			return err
		}
	}
	return nil
}

// sonnyScript is what the model says.
func sonnyScript(s sonnySession) object {
	says := func(prompt, text string, pace int, more object) object {
		step := object{"text": text, "pace_ms": pace}
		for name, v := range more {
			step[name] = v
		}
		return object{"match": object{"equals": prompt}, "repeat_last": true, "steps": []object{step}}
	}
	scripts := []object{
		says(firstPrompt, replyOf(s.lines, newestMark), 0, nil),
		says(nextPrompt, replyOf(s.lines, newestMark), 0, nil),
		says(streamPrompt, strings.TrimSpace(strings.Repeat("lorem ipsum dolor sit amet\nconsectetur"+streamsMark+" ", streamWords/6)), streamPaceMS, nil),
		says(silentPrompt, "now", 0, object{"delay_ms": 100_000}),
		{"match": object{"equals": printPrompt}, "repeat_last": true, "steps": []object{
			{"calls": []object{{"tool": "shell", "arguments": object{"command": printMuch}}}},
			{"text": "That was much. " + printedMark},
		}},
	}
	if s.long > 0 {
		scripts = append(scripts, says(longPrompt, terseReply(s.long, longMark), 0, nil))
	}
	return object{"version": 1, "models": object{"sonny": object{"context_tokens": 100_000_000, "scripts": scripts}}}
}

// replyShape is how many lines of a reply are before its shape comes again.
const replyShape = 10

// replyOf is Markdown of so many lines, a multiple of replyShape, none of which is longer
// than a row of the screen. The last one is a mark.
func replyOf(lines int, end string) string {
	var b strings.Builder
	for n := 0; n < lines; n += replyShape {
		fmt.Fprintf(&b, "The parser keeps what it has read so far, and `commit` number %d writes it.\n", n)
		fmt.Fprintf(&b, "What follows is *not* read before that, so that line %d may still change.\n\n", n+1)
		fmt.Fprintf(&b, "- the reader, which has **one** owner (%d)\n- the writer, which waits for `flush` (%d)\n", n+3, n+4)
		fmt.Fprintf(&b, "```go\nfunc flush%d(w io.Writer) error {\n\treturn write(w, pending) }\n```\n\n", n+5)
	}
	return strings.TrimSuffix(b.String(), "\n") + "The end. " + end
}

// terseReply is the same with lines so short that 50,000 of them are less than the
// mebibyte that one message can have to be read again.
func terseReply(lines int, end string) string {
	var b strings.Builder
	for n := 0; n < lines; n += replyShape {
		fmt.Fprintf(&b, "Line `%d` keeps *what* is read.\nAnd %d writes it.\n\n", n, n+1)
		fmt.Fprintf(&b, "- the **reader** %d\n- the writer %d\n", n+3, n+4)
		fmt.Fprintf(&b, "```go\nvar v%d int\nv%d++\n```\n\n", n+6, n+7)
	}
	return strings.TrimSuffix(b.String(), "\n") + "The end. " + end
}

// begin has Sonny make the lead and send its first two turns, and ends the daemon.
func (h *sonnyHome) begin(ctx context.Context) error {
	t, err := h.open()
	if err != nil {
		return err
	}
	_, err = t.await(ctx, "○ new")
	if err == nil {
		t.write(firstPrompt + "\r")
		_, err = t.await(ctx, newestMark)
	}
	if err == nil {
		_, err = t.await(ctx, "✔")
	}
	if err = errors.Join(err, t.close()); err != nil {
		return fmt.Errorf("making the lead: %w", err)
	}
	if err := h.say(ctx, sonnyLead, nextPrompt); err != nil {
		return err
	}
	return h.client.Shutdown(ctx, 0)
}

// fill repeats the second turn, so that there are so many, and starts the daemon again as Sonny starts it.
func (h *sonnyHome) fill(ctx context.Context, turns int) error {
	if err := repeatTurns(h.path(".agent", "state.sqlite"), turns-2); err != nil {
		return err
	}
	t, err := h.open()
	if err != nil {
		return err
	}
	_, err = t.await(ctx, newestMark)
	return errors.Join(err, t.close())
}

// sonny is a command of Sonny's in the repository.
func (h *sonnyHome) sonny(args ...string) *exec.Cmd {
	cmd := exec.Command(h.b.sonny, args...)
	cmd.Dir = h.path(sonnyProject)
	cmd.Env = h.environment()
	return cmd
}

func (h *sonnyHome) environment() []string {
	return append(environment(h.dir, "TERM=xterm-256color", "COLORTERM=truecolor", "SHELL=/bin/sh", "GIT_CONFIG_NOSYSTEM=1"), "LANG=C.UTF-8")
}

// open opens Sonny on a terminal.
func (h *sonnyHome) open() (*terminal, error) { return openTerminal(h.sonny()) }

// run runs a program in the repository to its end.
func (h *sonnyHome) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = h.path(sonnyProject), h.environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// say runs a turn of a bot to its end.
func (h *sonnyHome) say(ctx context.Context, bot, prompt string) error {
	end, err := h.client.Run(ctx, &protocol.Submit{Bot: bot, RequestID: requestOf(int(answers.Add(1))), Prompt: prompt}, nil)
	if err == nil && end.Status != "completed" {
		err = fmt.Errorf("a turn of %s ended %s", bot, end.Status)
		if end.Error != nil && end.Detail != nil {
			err = fmt.Errorf("%w: %s: %s", err, *end.Error, *end.Detail)
		}
	}
	return err
}

// streams has so many bots stream at once, the lead among them, and ends their turns
// when end is called.
func (h *sonnyHome) streams(ctx context.Context, bots int) (end func() error, err error) {
	names := []string{sonnyLead}
	for n := 1; n < bots; n++ {
		name := fmt.Sprintf("%s.s%d", sonnyProject, n)
		names = append(names, name)
		_, err := h.client.Create(ctx, &protocol.Create{Bot: name, Model: "scripted/sonny", Instructions: "Stream.", Workspace: h.path(sonnyProject)})
		if err != nil {
			return nil, err
		}
	}
	return h.turns(ctx, streamPrompt, names...)
}

// turns begins a turn of each bot. end interrupts them.
func (h *sonnyHome) turns(ctx context.Context, prompt string, bots ...string) (end func() error, err error) {
	turns := make([]int64, len(bots))
	end = func() (err error) {
		for i, name := range bots {
			if turns[i] != 0 {
				_, ended := h.client.Interrupt(ctx, name, turns[i], "measured")
				err = errors.Join(err, ended)
			}
		}
		return err
	}
	for i, name := range bots {
		s, err := h.client.Submit(ctx, &protocol.Submit{Bot: name, RequestID: requestOf(int(answers.Add(1))), Prompt: prompt})
		if err != nil {
			return nil, errors.Join(err, end())
		}
		turns[i] = s.Turn
	}
	return end, nil
}

// daemon is the process of the home's daemon.
func (h *sonnyHome) daemon(ctx context.Context) (pid int, err error) {
	ready, err := h.client.Ready(ctx)
	if err != nil {
		return 0, err
	}
	return ready.PID, nil
}

// close ends the daemon.
func (h *sonnyHome) close(ctx context.Context) error {
	err := h.client.Shutdown(context.WithoutCancel(ctx), 0)
	if errors.Is(err, protocol.DaemonUnavailable) {
		err = nil
	}
	return errors.Join(err, h.client.Close())
}
