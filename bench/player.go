package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"agent/internal/fakemodel"
)

// playWord, as the first argument, makes this program a model server that does
// what the prompts say: the first line of a prompt is a part. It is as strict
// about what it is sent as the other one.
const playWord = "play"

// part is what the model server does in one turn.
type part struct {
	Deltas    int             `json:"deltas,omitempty"` // pieces of the answer; 0: one of three bytes
	Size      int             `json:"size,omitempty"`   // bytes of a piece, 0: 256
	GapMS     int             `json:"gap_ms,omitempty"` // between them
	DelayMS   int             `json:"delay_ms,omitempty"`
	Hold      string          `json:"hold,omitempty"` // the answer's end waits until this is released
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Rounds    int             `json:"rounds,omitempty"`     // of calls, before the answer
	Each      int             `json:"each,omitempty"`       // calls of a round, 0: one
	Await     bool            `json:"await,omitempty"`      // then wait for the newest background command
	FailEvery int             `json:"fail_every,omitempty"` // requests, of which one fails
	RefuseS   int             `json:"refuse_s,omitempty"`   // answer that it is too many requests, for that many seconds
}

const partDelta = 256

// prompt is a prompt of at least size bytes that asks for the part.
func (p part) prompt(bot, turn, size int) string {
	line, err := json.Marshal(p)
	if err != nil {
		panic(err) // arguments of our own that are no JSON
	}
	return string(line) + "\n" + promptOf(bot, turn, max(size-len(line)-1, 0))
}

// calling is a part that calls a tool once and then says something.
func calling(tool string, arguments any) part {
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return part{Tool: tool, Arguments: text, Rounds: 1}
}

// shell is a part that runs one command.
func shell(command string) part { return calling("shell", map[string]string{"command": command}) }

// player is the state of that model server.
type player struct {
	mu    sync.Mutex
	bots  map[string]*playing
	gates map[string]*fakemodel.Gate

	secure *fakemodel.Secure // nil: it is spoken to in the clear
}

// playing is a bot's newest part and how far it has come.
type playing struct {
	part
	asked  int // requests, of all parts
	rounds int // of calls, in this part
}

// summaryMark, in a bot's compaction instructions, makes the answer a summary.
const summaryMark = "Summarize what was said so far."

// play runs the server as a program. It obeys the lines stats and violations,
// and of a hold by its name: await NAME N, which is answered when N answers
// wait there, and release NAME, after which nothing waits there any more. With
// -secure it also obeys connections.
func play(args []string, in io.Reader, out, errs io.Writer) int {
	p := player{bots: map[string]*playing{}, gates: map[string]*fakemodel.Gate{}}
	opts := fakemodel.Options{Identity: fakemodel.ByModel, Handler: p.reply}
	f := flag.NewFlagSet(playWord, flag.ContinueOnError)
	f.SetOutput(errs)
	f.BoolVar(&opts.Window, "window", false, "let a history leave out its beginning")
	f.BoolVar(&opts.Lost, "lost", false, "accept that an answer is missing, as after an interrupt")
	roots := f.String("secure", "", "be reached by TLS and HTTP/2, and write the certificate to trust into this `file`")
	if err := f.Parse(args); err != nil {
		return 2
	}
	s, err := fakemodel.New(opts)
	if err != nil {
		fmt.Fprintln(errs, "bench:", err)
		return 2
	}
	defer s.Close()
	url := s.URL
	if *roots != "" {
		if p.secure, err = s.Secure(); err == nil {
			url, err = p.secure.URL, os.WriteFile(*roots, p.secure.Roots, 0o600)
			defer p.secure.Close()
		}
		if err != nil {
			fmt.Fprintln(errs, "bench:", err)
			return 2
		}
	}
	lines := json.NewEncoder(out)
	lines.Encode(map[string]string{"url": url})
	commands := bufio.NewScanner(in)
	for commands.Scan() {
		lines.Encode(p.obey(s, strings.Fields(commands.Text())))
	}
	return 0
}

func (p *player) obey(s *fakemodel.Server, words []string) any {
	var name string
	var n int
	switch {
	case len(words) == 1 && words[0] == "stats":
		return s.Stats()
	case len(words) == 1 && words[0] == "violations":
		return s.Violations()
	case len(words) == 1 && words[0] == "connections" && p.secure != nil:
		return map[string]int64{"opened": p.secure.Connections()}
	case len(words) == 2 && words[0] == "release":
		g := p.gate(words[1])
		g.Release()
		return map[string]int{"released": g.Waiting()}
	case len(words) == 3 && words[0] == "await":
		if _, err := fmt.Sscan(words[1]+" "+words[2], &name, &n); err == nil {
			p.gate(name).Await(nil, n)
			return map[string]int{"held": n}
		}
	}
	return map[string]string{"error": "unknown command"}
}

func (p *player) gate(name string) *fakemodel.Gate {
	if name == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.gates[name]
	if g == nil {
		g = fakemodel.NewGate()
		p.gates[name] = g
	}
	return g
}

// handle is the command in the background that this answer waits for, "" for
// none. The result of a wait is for the handle that was waited for.
func (p *player) handle(t part, req *fakemodel.Request) string {
	if !t.Await || !req.AfterResult || !strings.HasPrefix(req.Result, `{"handle":"`) {
		return ""
	}
	handle, _, _ := strings.Cut(strings.TrimPrefix(req.Result, `{"handle":"`), `"`)
	return handle
}

func (p *player) reply(req *fakemodel.Request) fakemodel.Reply {
	t, calls, fails := p.next(req)
	if t.RefuseS > 0 {
		return fakemodel.HTTPError(429, "Too many requests.", "Retry-After", fmt.Sprint(t.RefuseS))
	}
	handle := p.handle(t, req)
	if fails {
		return fakemodel.HTTPError(503, "This one fails.")
	}
	var r fakemodel.Reply
	switch {
	case strings.Contains(req.Prompt, summaryMark):
		return fakemodel.Say("Many things were said, and none of them matters any more.")
	case calls:
		var blocks []fakemodel.Block
		for range max(t.Each, 1) {
			blocks = append(blocks, fakemodel.Call(t.Tool, string(t.Arguments)))
		}
		r = fakemodel.Say("", blocks...)
	case handle != "":
		r = fakemodel.Say("", fakemodel.Call("wait", `{"handles":["`+handle+`"]}`))
	case t.Deltas > 0:
		r = fakemodel.Deltas(t.Deltas, cmp.Or(t.Size, partDelta), millisOf(t.GapMS))
		r.Finish = p.gate(t.Hold)
	default:
		r = fakemodel.Say("Ok.")
		r.Finish = p.gate(t.Hold)
	}
	r.Delay = millisOf(t.DelayMS)
	return r
}

// next finds the part of a request's turn, and whether this answer of it calls
// or fails. A prompt that is no part (what asks for a summary, a summary, a note
// of the daemon's) leaves the one before in force.
func (p *player) next(req *fakemodel.Request) (t part, calls, fails bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.bots[req.Identity]
	if now == nil {
		now = &playing{}
		p.bots[req.Identity] = now
	}
	now.asked++
	line, _, _ := strings.Cut(req.Prompt, "\n")
	if req.Rounds == 0 && !req.AfterResult && json.Unmarshal([]byte(line), &t) == nil {
		now.part, now.rounds = t, 0
	}
	if now.FailEvery > 0 && now.asked%now.FailEvery == 0 {
		return now.part, false, true
	}
	if now.Tool != "" && now.rounds < now.Rounds && !req.ToolsOff && !strings.Contains(req.Prompt, summaryMark) {
		now.rounds++
		calls = true
	}
	return now.part, calls, false
}

func millisOf(n int) time.Duration { return time.Duration(n) * time.Millisecond }
