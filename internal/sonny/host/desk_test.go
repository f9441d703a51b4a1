package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/client"
	"agent/internal/sonny/host/tools"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

func TestMain(m *testing.M) { sonnytest.Main(m) }

// patience bounds every wait for something that is sure to come.
const patience = time.Minute

// desk is a home whose daemon keeps Sonny's companions.
type desk struct {
	*sonnytest.Home
	t   *testing.T
	c   *client.Client
	ctx context.Context
}

func newDesk(t *testing.T, options ...sonnytest.Option) *desk {
	t.Helper()
	return deskOf(t, sonnytest.Fresh(t, options...))
}

// deskOf starts the daemon of a home.
func deskOf(t *testing.T, h *sonnytest.Home) *desk {
	t.Helper()
	d := &desk{Home: h, t: t}
	var cancel context.CancelFunc
	d.ctx, cancel = context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	d.must("start")
	d.c = h.Client()
	d.companions("approver", "toolhost")
	return d
}

// companions has the daemon keep these of Sonny's.
func (d *desk) companions(names ...string) {
	d.t.Helper()
	self := filepath.Join(sonnytest.Programs(d.t), "sonny")
	specs := []protocol.CompanionSpec{}
	for _, name := range names {
		specs = append(specs, protocol.CompanionSpec{Name: name, Command: []string{self, "companion", name, "--settings", d.Path(".agent", "config.toml")}})
	}
	if _, err := d.c.SetCompanions(d.ctx, specs); err != nil {
		d.t.Fatal(err)
	}
}

// companion is the record of one of them.
func (d *desk) companion(name string) *protocol.Companion {
	d.t.Helper()
	list, err := d.c.Companions(d.ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	d.t.Fatalf("there is no companion %s", name)
	return nil
}

// log is what a companion has printed.
func (d *desk) log(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(d.companion(name).Log)
	if err != nil && !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	return string(text)
}

func (d *desk) must(args ...string) string {
	d.t.Helper()
	r := d.Agent(args...)
	if r.Exit != 0 {
		d.t.Fatalf("agent %s: exit %d: %s", strings.Join(args, " "), r.Exit, r.Stderr)
	}
	return r.Stdout
}

// lead makes the lead of a folder, as the screen makes it.
func (d *desk) lead(dir string, row lead.Row, change ...func(*lead.Plan)) *protocol.Bot {
	d.t.Helper()
	folder, err := lead.Locate(d.ctx, dir)
	if err != nil {
		d.t.Fatal(err)
	}
	ready, err := d.c.Ready(d.ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	settings := lead.DefaultSettings()
	settings.Row = row
	project := filepath.Base(dir)
	p := &lead.Plan{
		Folder: folder, Project: project, Name: project + ".lead", Store: d.Path(".agent", "state.sqlite"), Model: "scripted/sonny",
		Settings: settings, Tools: ready.Tools, ClientTools: tools.For(tools.Lead, settings.Tasks.SetupTimeout),
	}
	for _, c := range change {
		c(p)
	}
	bot, err := p.Make(d.ctx, d.c)
	if err != nil {
		d.t.Fatal(err)
	}
	err = lead.BookIn(d.sonny()).Change(func(page *lead.Page) error {
		page.Put(lead.Session{
			Store: ready.Store.Identity, BotID: bot.ID, Bot: bot.Name, Folder: folder.Path, Project: project,
			Kind: lead.KindLead, Repo: folder.Repo, Opened: time.Now(),
		})
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return bot
}

// sonny is ~/.agent/sonny, which is made.
func (d *desk) sonny() string {
	d.t.Helper()
	dir := d.Path(".agent", "sonny")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	return dir
}

// turn is a turn under way.
type turn struct {
	*desk
	protocol.Submitted
	bot string
}

// say gives a bot a prompt.
func (d *desk) say(bot, prompt string) *turn {
	d.t.Helper()
	got, err := d.c.Submit(d.ctx, &protocol.Submit{Bot: bot, Prompt: prompt})
	if err != nil {
		d.t.Fatal(err)
	}
	return &turn{d, *got, bot}
}

// outcome waits for the turn's end.
func (n *turn) outcome() *protocol.Outcome {
	n.t.Helper()
	for _, err := range n.c.Follow(n.ctx, n.bot, client.FollowOptions{Turn: n.Turn, NoDeltas: true}) {
		if err != nil {
			n.t.Fatalf("%v\n%s", err, n.log("toolhost"))
		}
	}
	o, err := n.c.Result(n.ctx, n.bot, n.Turn)
	if err != nil {
		n.t.Fatal(err)
	}
	return o
}

// says is what the bot has said last in a turn that completes.
func (n *turn) says() string {
	n.t.Helper()
	o := n.outcome()
	if o.Status != protocol.StatusCompleted {
		n.t.Fatalf("the turn is %s: %v %v\n%s", o.Status, deref(o.Error), deref(o.Detail), n.log("toolhost"))
	}
	return o.Text
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// answers decodes what the tool gave: the script's bots repeat it.
func (n *turn) answers(into any) {
	n.t.Helper()
	text := n.says()
	var e struct{ Error string }
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Error != "" {
		n.t.Fatalf("%v in %s\n%s", err, text, n.log("toolhost"))
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		n.t.Fatalf("%v in %s", err, text)
	}
}

// in is the desk for a part of its test.
func (d *desk) in(t *testing.T) *desk {
	t.Helper()
	other := *d
	other.t = t
	return &other
}

// failure is the code and the detail that the tool gave.
func (n *turn) failure() (code, detail string) {
	n.t.Helper()
	var e struct{ Error, Detail, Reason string }
	if text := n.says(); json.Unmarshal([]byte(text), &e) != nil || e.Error == "" {
		n.t.Fatalf("no failure: %s", text)
	}
	return e.Error, e.Detail + e.Reason
}

// waiting is the call of a bot that waits for a verdict.
func (d *desk) waiting(bot string) (call *protocol.Approval) {
	d.t.Helper()
	d.Until("a call that waits", func() bool {
		for a, err := range d.c.Approvals(d.ctx, client.ApprovalFilter{Bot: bot}) {
			if err != nil {
				d.t.Fatal(err)
			}
			call = a
		}
		return call != nil
	})
	return call
}

func (d *desk) answer(a *protocol.Approval, decision, reason string) {
	d.t.Helper()
	_, err := d.c.Answer(d.ctx, &protocol.Answer{
		Bot: a.Bot, Turn: a.Turn, CallID: a.CallID, Request: a.Request, Step: a.Step, Decision: decision, Reason: reason, By: "you",
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// there reports whether a path exists.
func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// bots are the names of all bots.
func (d *desk) bots() (names []string) {
	d.t.Helper()
	for b, err := range d.c.Bots(d.ctx) {
		if err != nil {
			d.t.Fatal(err)
		}
		if !b.Closed { // a judge's
			names = append(names, b.Name)
		}
	}
	return names
}

// anyCall are the calls that wait for the host.
var anyCall = client.ApprovalFilter{Tag: tools.Tag}

// kill ends a companion as a crash would, and waits for the next one.
func (d *desk) kill(name string) {
	d.t.Helper()
	before := d.companion(name)
	if before.PID == nil {
		d.t.Fatalf("%s does not run", name)
	}
	pid := int(*before.PID)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
	d.Until("another "+name, func() bool {
		now := d.companion(name)
		return now.PID != nil && int(*now.PID) != pid
	})
}
