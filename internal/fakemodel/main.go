package fakemodel

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Main runs a server as a program of its own, so that its memory and time do
// not count with what is measured. It prints {"url":...} once it listens and
// then obeys lines on standard input, answering each with one line of JSON:
//
//	stats       the counts
//	violations  what was wrong so far
//	hold        hold the end of every reply from now on
//	release     let all held replies go
//
// It ends with its input and returns 1 when there were violations, 2 when it
// could not start.
func Main(args []string) int { return run(args, os.Stdin, os.Stdout, os.Stderr) }

// program is the state of a server run as a program.
type program struct {
	deltas, size int
	gap, delay   time.Duration
	tool         string
	arguments    string
	failEvery    int64
	failStatus   int

	asked atomic.Int64
	mu    sync.Mutex
	gate  *Gate
}

var identities = map[string]func(*Request) string{
	"none": nil, "model": ByModel, "system": BySystem, "cache-key": ByCacheKey, "first-item": ByFirstItem,
}

func run(args []string, in io.Reader, out, errs io.Writer) int {
	var p program
	var opts Options
	var identity, models string
	f := flag.NewFlagSet("fakemodel", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&opts.Addr, "addr", "127.0.0.1:0", "loopback `address` to listen on")
	f.StringVar(&opts.Key, "key", "", "the `credential` every request must carry")
	f.StringVar(&identity, "identity", "none", "what tells bots apart: none, model, system, cache-key, first-item")
	f.StringVar(&models, "models", "fake", "model ids to list, with commas between")
	f.BoolVar(&opts.Window, "window", false, "let a history leave out its beginning")
	f.BoolVar(&opts.Foreign, "foreign", false, "accept answers that another server gave")
	f.BoolVar(&opts.Lost, "lost", false, "accept that an answer is missing, as after an interrupt")
	f.IntVar(&p.deltas, "deltas", 20, "deltas of a reply")
	f.IntVar(&p.size, "size", 256, "`bytes` of a delta")
	f.DurationVar(&p.gap, "gap", 25*time.Millisecond, "time between deltas")
	f.DurationVar(&p.delay, "delay", 0, "time before a reply's headers")
	f.StringVar(&p.tool, "tool", "", "`name` of a tool that each turn calls once")
	f.StringVar(&p.arguments, "arguments", "{}", "the call's arguments, a JSON `object`")
	f.Int64Var(&p.failEvery, "fail-every", 0, "fail every Nth request")
	f.IntVar(&p.failStatus, "fail-status", 500, "the status it fails with")
	if err := f.Parse(args); err != nil {
		return 2
	}
	id, known := identities[identity]
	if !known || f.NArg() > 0 || !isObject(p.arguments) || p.deltas < 0 || p.size < 1 {
		fmt.Fprintln(errs, "fakemodel: a wrong identity, number or object, or an argument too many; see -help")
		return 2
	}
	opts.Identity, opts.Handler, opts.Models = id, p.reply, strings.Split(models, ",")
	s, err := New(opts)
	if err != nil {
		fmt.Fprintln(errs, "fakemodel:", err)
		return 2
	}
	defer s.Close()
	lines := json.NewEncoder(out)
	lines.Encode(map[string]string{"url": s.URL})
	commands := bufio.NewScanner(in)
	for commands.Scan() {
		lines.Encode(p.obey(s, strings.TrimSpace(commands.Text())))
	}
	p.obey(s, "release")
	if s.Stats().Violations > 0 {
		return 1
	}
	return 0
}

func (p *program) reply(req *Request) Reply {
	if n := p.asked.Add(1); p.failEvery > 0 && n%p.failEvery == 0 {
		return HTTPError(p.failStatus, "This one fails.")
	}
	r := Deltas(p.deltas, p.size, p.gap)
	if p.tool != "" && req.Rounds == 0 && !req.ToolsOff {
		r = Say("", Call(p.tool, p.arguments))
	}
	r.Delay = p.delay
	p.mu.Lock()
	r.Finish = p.gate
	p.mu.Unlock()
	return r
}

func (p *program) obey(s *Server, command string) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch command {
	case "stats":
		return s.Stats()
	case "violations":
		return s.Violations()
	case "hold":
		if p.gate == nil {
			p.gate = NewGate()
		}
		return map[string]int{"held": p.gate.Waiting()}
	case "release":
		held := 0
		if p.gate != nil {
			held = p.gate.Waiting()
			p.gate.Release()
			p.gate = nil
		}
		return map[string]int{"released": held}
	}
	return map[string]string{"error": "unknown command " + command}
}
