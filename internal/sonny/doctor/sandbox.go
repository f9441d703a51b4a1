package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agent/client"
	"agent/client/termsafe"
	"agent/internal/place"
	"agent/internal/sonny/setup"
	"agent/protocol"
)

// trialFor bounds the sandbox's trial.
const trialFor = time.Minute

// trial is what confined commands could do and could not (sonny.md 19.1, step 4): two
// bots of a daemon that lives for this alone, in a temporary folder, with words from a
// file. What they could reach is seen from outside of them.
type trial struct {
	mode string // of the bots' sandbox; tests have it made without one
	err  error  // it could not be made; sandbox_unavailable says why nothing can be confined

	wroteInside, wroteOutside bool
	reachedWalled             bool // a socket where the daemon's are
	reachedOpen               bool // another, with the network on
	ranClosed                 bool // the bot without network ran its command
	reachedClosed             bool // that socket, with the network off
}

// sandboxTrial makes the trial once.
func (d *Doctor) sandboxTrial(ctx context.Context) *trial {
	if d.trial == nil {
		ctx, cancel := context.WithTimeout(ctx, trialFor)
		defer cancel()
		d.trial = &trial{mode: protocol.SandboxWorkspace}
		d.trial.err = d.trial.make(ctx, d.o.Agent, d.o.AgentErr, d.o.Dialer)
	}
	return d.trial
}

// ground is the folder of a trial, and what lies in it.
type ground struct {
	top, home, store, work, outside, wall, open string
	walled, plain                               *callers
}

func (t *trial) make(ctx context.Context, agent string, agentErr error, dialer []string) error {
	if agent == "" {
		return agentErr
	}
	g, err := newGround()
	if err != nil {
		return err
	}
	defer g.close()
	script, err := g.script(dialer)
	if err != nil {
		return err
	}
	c, end, err := setup.Throwaway(ctx, agent, g.store, setup.PlainEnv(g.home), "--provider=check=scripted,"+script, "--wall="+g.wall)
	if err != nil {
		return err
	}
	defer end()
	if err := g.run(ctx, c, t.bot("open", g.work, true)); err != nil {
		return err
	}
	t.wroteInside, t.wroteOutside = there(g.work, "inside"), there(g.outside, "file")
	t.reachedWalled, t.reachedOpen = g.walled.any(), g.plain.any()
	g.plain.forget()
	if err := g.run(ctx, c, t.bot("closed", g.work, false)); err != nil {
		return err
	}
	t.ranClosed, t.reachedClosed = there(g.work, "closed"), g.plain.any()
	return nil
}

func there(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

func newGround() (*ground, error) {
	top, err := os.MkdirTemp("", "sonny-doctor-")
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(top)
	if err != nil {
		os.RemoveAll(top)
		return nil, err
	}
	g := &ground{top: real}
	for name, at := range map[string]*string{"home": &g.home, "store": &g.store, "work": &g.work, "outside": &g.outside, "wall": &g.wall, "open": &g.open} {
		*at = filepath.Join(real, name)
		if err := os.Mkdir(*at, 0o700); err != nil {
			g.close()
			return nil, err
		}
	}
	if g.walled, err = listen(filepath.Join(g.wall, "s")); err == nil {
		g.plain, err = listen(filepath.Join(g.open, "s"))
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *ground) close() {
	for _, c := range []*callers{g.walled, g.plain} {
		if c != nil {
			c.close()
		}
	}
	os.RemoveAll(g.top)
}

// script writes what the two bots say, and gives the file's path.
func (g *ground) script(dialer []string) (string, error) {
	dial := func(c *callers) string {
		var words []string
		for _, w := range append(append([]string{}, dialer...), c.path) {
			words = append(words, termsafe.ShellWord(w))
		}
		return strings.Join(words, " ")
	}
	word := func(dir, name string) string { return termsafe.ShellWord(filepath.Join(dir, name)) }
	open := strings.Join([]string{
		"echo x > " + word(g.work, "inside"),
		"(echo x > " + word(g.outside, "file") + ") 2>&1",
		dial(g.walled), dial(g.plain), "true",
	}, "\n")
	closed := strings.Join([]string{dial(g.plain), "echo x > " + word(g.work, "closed")}, "\n")
	text, err := json.Marshal(map[string]any{"version": 1, "models": map[string]any{"open": saying(open), "closed": saying(closed)}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(g.top, "script.json")
	return path, os.WriteFile(path, text, 0o600)
}

// saying is a scripted model that runs one command and ends.
func saying(command string) any {
	call := map[string]any{"tool": "shell", "arguments": map[string]any{"command": strings.ReplaceAll(command, "$", "$$")}}
	return map[string]any{"scripts": []any{map[string]any{
		"match": map[string]any{"any": true},
		"steps": []any{map[string]any{"calls": []any{call}}, map[string]any{"text": "done"}},
	}}}
}

// bot is one that may write the folder work alone.
func (t *trial) bot(name, work string, network bool) *protocol.Create {
	r := &protocol.Create{
		Bot: name, Model: "check/" + name, Instructions: "Check the sandbox.", Tools: []string{"shell"},
		Workspace: work, Sandbox: t.mode,
	}
	if t.mode == protocol.SandboxWorkspace {
		r.Network, r.ExcludeSlashTmp, r.ExcludeTmpdirEnvVar = protocol.Set(network), protocol.Set(true), protocol.Set(true)
	}
	return r
}

// run has a bot run its command, and waits for that.
func (g *ground) run(ctx context.Context, c *client.Client, bot *protocol.Create) error {
	if _, err := c.Create(ctx, bot); err != nil {
		return err
	}
	name := bot.Bot
	turn, err := c.Submit(ctx, &protocol.Submit{Bot: name, Prompt: "check", RequestID: name})
	if err != nil {
		return err
	}
	wait := &protocol.Wait{Handles: []string{fmt.Sprintf("turn:%s/%d", name, turn.Turn)}}
	if err := c.Do(ctx, protocol.OpWait, wait, nil); err != nil { // over the one connection that there is
		return err
	}
	o, err := c.Result(ctx, name, turn.Turn)
	if err == nil && o.Status != protocol.StatusCompleted {
		err = ended(o)
	}
	return err
}

// ended is a turn's end as an error.
func ended(o *protocol.Outcome) error {
	e := &protocol.Error{Code: "failed", Detail: "the turn ended " + o.Status}
	if o.Error != nil {
		e.Code = *o.Error
	}
	if o.Detail != nil {
		e.Detail = *o.Detail
	}
	return e
}

// callers counts who connects to a Unix socket. The connection is closed once it is
// counted, so that whoever has waited for that has been.
type callers struct {
	path string
	l    interface {
		Accept() (net.Conn, error)
		Close() error
	}
	count atomic.Int64
	wg    sync.WaitGroup
}

func listen(path string) (*callers, error) {
	l, err := place.ListenBot(path)
	if err != nil {
		return nil, err
	}
	c := &callers{path: path, l: l}
	c.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.count.Add(1)
			conn.Close()
		}
	})
	return c, nil
}

func (c *callers) any() bool { return c.count.Load() > 0 }
func (c *callers) forget()   { c.count.Store(0) }

func (c *callers) close() {
	c.l.Close()
	c.wg.Wait()
}

// Dial is the command that Options.Dialer names, at its end: it connects to a Unix
// socket and waits until that is closed.
func Dial(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	c := &client.Client{Target: client.Target{Socket: socket}}
	defer c.Close()
	_, err := c.Ready(ctx) // nobody says it: what counts is who connected
	return err
}

// launcher is the program that confines commands.
func launcher() string {
	if runtime.GOOS == "darwin" {
		return "sandbox-exec"
	}
	return "bubblewrap"
}

// Cause is why commands cannot be confined, taken apart.
type Cause struct {
	Program bool   // of the launching program: it is missing, too old, or not to be trusted
	What    string // what is the matter
	Remedy  string // what would help; "" where nothing is known
}

// ofProgram are the signs of a launching program that will not do.
var ofProgram = []string{
	"no bubblewrap at", "there is no program", "is not owned by root", "may be written by others", "is no program", "does not run:", "or newer is needed",
}

// CauseOf takes the words of sandbox_unavailable apart, which are those of the daemon's
// own probe: "what; remedy", or "what (why: remedy): what the program said".
func CauseOf(detail string) Cause {
	c := Cause{What: detail}
	c.Program = slices.ContainsFunc(ofProgram, func(sign string) bool { return strings.Contains(detail, sign) })
	what, hint, hinted := strings.Cut(detail, " (")
	hint, _, closed := strings.Cut(hint, "): ")
	why, remedy, known := strings.Cut(hint, ": ")
	switch {
	case hinted && closed && known:
		c.What, c.Remedy = what+": "+why, remedy
	case c.Program:
		c.What, c.Remedy, _ = strings.Cut(detail, "; ")
	}
	if c.Program && c.Remedy == "" {
		c.Remedy = "install " + launcher() + " anew from your system's packages"
	}
	return c
}

func (d *Doctor) sandboxProgram(ctx context.Context) finding {
	t := d.sandboxTrial(ctx)
	if t.err == nil {
		return okf("%s is there and may be trusted", launcher())
	}
	if !errors.Is(t.err, protocol.SandboxUnavailable) {
		return skipf("the check could not be made; see sandbox.run")
	}
	if c := CauseOf(reason(t.err)); c.Program {
		return failed(c.What, c.Remedy)
	}
	return okf("%s is there and may be trusted", launcher())
}

func (d *Doctor) sandboxRun(ctx context.Context) finding {
	t := d.sandboxTrial(ctx)
	switch {
	case t.err == nil:
	case errors.Is(t.err, protocol.SandboxUnavailable):
		c := CauseOf(reason(t.err))
		if c.Program {
			return skipf("there is no program to confine commands with; see sandbox.program")
		}
		return failed(c.What, c.Remedy)
	default:
		return faultOf(Fail, t.err, "see version, and whether the temporary folder can be written")
	}
	var faults []string
	if !t.wroteInside {
		faults = append(faults, "a write inside the folder failed")
	}
	if t.wroteOutside {
		faults = append(faults, "a write outside the folder went through")
	}
	if t.reachedWalled {
		faults = append(faults, "a command reached a socket behind the daemon's wall")
	}
	if len(faults) > 0 {
		return failed("the sandbox does not confine: "+strings.Join(faults, ", "), "use no sandboxed bot on this machine until "+launcher()+" is mended")
	}
	return okf("confined: a write inside works, one outside fails, the daemon's sockets cannot be reached")
}

func (d *Doctor) sandboxNetwork(ctx context.Context) finding {
	t := d.sandboxTrial(ctx)
	switch {
	case t.err != nil:
		return skipf("the check could not be made; see sandbox.run")
	case t.reachedClosed:
		return failed("with the network off a command reached a Unix socket", "use no bot with the network off on this machine until "+launcher()+" is mended")
	case !t.reachedOpen || !t.ranClosed:
		return warn("it could not be told: the command that tries a socket did not run as it must", "run sonny from where bots may read it")
	}
	return okf("with the network off a Unix socket cannot be reached")
}
