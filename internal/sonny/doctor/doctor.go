// Package doctor looks whether all that Sonny rests on is as it should be (sonny.md
// 19.3). It asks the rooms that know, and changes nothing but by Mend.
package doctor

import (
	"context"
	"time"

	"agent/client"
	"agent/client/envfile"
	"agent/internal/sonny/config"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/repo"
	"agent/internal/sonny/screen/term"
	"agent/protocol"
)

// Status is what a check came to.
type Status string

// The statuses.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
	Skip Status = "skip" // it was not made; the summary says why
)

// Check is one check of a report. Summary, Detail and Remedy are one line each, without
// secrets, without what a terminal acts on, and without paths outside the home.
type Check struct {
	ID      string `json:"id"`
	Status  Status `json:"status"`
	Summary string `json:"summary"`
	Detail  string `json:"detail"`
	Remedy  string `json:"remedy"`
	MS      int64  `json:"ms"` // how long it took, in milliseconds
}

// Report is what doctor found, in the order of the document's table.
type Report struct {
	V       int       `json:"v"`
	At      time.Time `json:"at"` // UTC
	Version string    `json:"version"`
	Overall Status    `json:"overall"` // the worst of the checks: fail, warn or ok
	Checks  []Check   `json:"checks"`
}

// Failed reports whether a check failed.
func (r *Report) Failed() bool { return r.Overall == Fail }

// Options are what the caller knows. Paths are real and absolute.
type Options struct {
	Version string
	Home    string
	Folder  string    // that it was run in
	Repo    repo.Repo // the checkout that holds Folder; zero outside one
	Environ []string  // as os.Environ gives it

	Reach    connect.Options // the daemon; it is reached and never started
	ReachErr error           // why it cannot be told which daemon; Reach is then a guess

	// ConfigPath is config.toml's path; Config, Notices and ConfigErr are what
	// config.Resolve gave.
	ConfigPath string
	Config     *config.Config
	Notices    []config.Notice
	ConfigErr  error

	Agent    string // the agent program; "" where there is none, and AgentErr says why
	AgentErr error

	// Dialer is a command that takes a Unix socket's path as one more argument and is
	// Dial. It is run inside the sandbox.
	Dialer []string

	Editor     string   // the command that opens files
	Companions []string // the names of those that this build has the daemon keep

	Tmux     term.Tmux
	Terminal func() (*Terminal, error) // asks the terminal; nil where doctor runs at none

	Offline bool // nothing is asked of a provider
	MCP     bool // MCP servers are started

	Now func() time.Time // nil: time.Now
}

// Doctor makes the checks. It is for one goroutine.
type Doctor struct {
	o     Options
	quiet *discretion

	vars    []envfile.Var // of ~/.agent/env, as far as it can be read
	environ []string      // what a daemon that is started now would have

	link    *connect.Link // nil: no daemon answers
	linkErr error
	lists   *protocol.ProviderModels // what the providers list; nil: not asked, or in vain
	listErr error
	trial   *trial // of the sandbox

	mends map[string][]mend // by the check's id
}

// mend is one change that would help.
type mend struct {
	question string
	do       func(ctx context.Context) error
}

// finding is what a check found.
type finding struct {
	status                  Status
	summary, detail, remedy string
	mends                   []mend
}

// check is one row of the table.
type check struct {
	id   string
	look func(d *Doctor, ctx context.Context) finding
}

// table is that of the document, in its order.
func table() []check {
	return []check{
		{"version", (*Doctor).version},
		{"home.mode", (*Doctor).homeMode},
		{"env.mode", (*Doctor).envMode},
		{"env.parse", (*Doctor).envParse},
		{"env.shadowed", (*Doctor).envShadowed},
		{"config.parse", (*Doctor).configParse},
		{"config.unknown", (*Doctor).configUnknown},
		{"config.secrets", (*Doctor).configSecrets},
		{"providers", (*Doctor).providers},
		{"providers.reach", (*Doctor).providersReach},
		{"chatgpt", (*Doctor).chatgpt},
		{"models", (*Doctor).models},
		{"socket", (*Doctor).socket},
		{"store.mode", (*Doctor).storeMode},
		{"daemon.protocol", (*Doctor).daemonProtocol},
		{"daemon.options", (*Doctor).daemonOptions},
		{"daemon.paused", (*Doctor).daemonPaused},
		{"sandbox.program", (*Doctor).sandboxProgram},
		{"sandbox.run", (*Doctor).sandboxRun},
		{"sandbox.network", (*Doctor).sandboxNetwork},
		{"git", (*Doctor).git},
		{"rg", (*Doctor).rg},
		{"editor", (*Doctor).editor},
		{"clipboard", (*Doctor).clipboard},
		{"notify", (*Doctor).notify},
		{"scheduler", (*Doctor).scheduler},
		{"companions", (*Doctor).companions},
		{"judge", (*Doctor).judge},
		{"rules", (*Doctor).rules},
		{"mcp", (*Doctor).mcp},
		{"skills", (*Doctor).skills},
		{"roles", (*Doctor).roles},
		{"commands", (*Doctor).commands},
		{"memory", (*Doctor).memory},
		{"commons", (*Doctor).commons},
		{"worktrees", (*Doctor).worktrees},
		{"sessions", (*Doctor).sessions},
		{"terminal", (*Doctor).terminal},
		{"disk", (*Doctor).disk},
		{"programs", (*Doctor).programs},
	}
}

// Open prepares the checks: it reads the env file and looks for the daemon. It is closed
// by Close.
func Open(ctx context.Context, o Options) *Doctor {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Doctor{o: o, mends: map[string][]mend{}}
	d.readEnv()
	d.quiet = newDiscretion(&o, d.vars, d.environ)
	d.reach(ctx)
	return d
}

// Close leaves the daemon.
func (d *Doctor) Close() {
	if d.link != nil {
		d.link.Close()
	}
}

// Run makes all checks. It takes as long as the slowest of them: a provider may take ten
// seconds, the sandbox's trial a minute.
func (d *Doctor) Run(ctx context.Context) *Report {
	r := &Report{V: 1, At: d.o.Now().UTC().Truncate(time.Second), Version: d.quiet.text(d.o.Version)}
	for _, c := range table() {
		r.Checks = append(r.Checks, d.made(ctx, c))
	}
	r.sum()
	return r
}

// made is one check, made now.
func (d *Doctor) made(ctx context.Context, c check) Check {
	began := time.Now()
	f := c.look(d, ctx)
	d.mends[c.id] = f.mends
	return Check{
		ID: c.id, Status: f.status,
		Summary: d.quiet.text(f.summary), Detail: d.quiet.text(f.detail), Remedy: d.quiet.text(f.remedy),
		MS: time.Since(began).Milliseconds(),
	}
}

// sum sets the overall status.
func (r *Report) sum() {
	r.Overall = OK
	for _, c := range r.Checks {
		switch {
		case c.Status == Fail:
			r.Overall = Fail
		case c.Status == Warn && r.Overall == OK:
			r.Overall = Warn
		}
	}
}

// Mend does what would help and is allowed to, one change after another, each only when
// ask says so, and makes the checks anew that it was for. What a change failed of is told
// by tell. ask and tell get one line.
func (d *Doctor) Mend(ctx context.Context, r *Report, ask func(question string) bool, tell func(fault string)) {
	for _, c := range table() {
		mends := d.mends[c.id]
		done := false
		for _, m := range mends {
			if ctx.Err() != nil || !ask(d.quiet.text(c.id+": "+m.question)) {
				continue
			}
			if err := m.do(ctx); err != nil {
				tell(d.quiet.text(c.id + ": " + fault.Verb.Words(err)))
				continue
			}
			done = true
		}
		if done {
			d.again(ctx, r, c)
		}
	}
	r.sum()
}

// again makes a check anew, and those that the same file is looked at by.
func (d *Doctor) again(ctx context.Context, r *Report, changed check) {
	d.readEnv()
	for i, c := range table() {
		if c.id == changed.id || related[changed.id] != nil && related[changed.id][c.id] {
			r.Checks[i] = d.made(ctx, c)
		}
	}
}

// related are the checks that a change of another makes stale.
var related = map[string]map[string]bool{
	"env.mode": {"env.parse": true, "env.shadowed": true, "providers": true},
}

// starting is what a daemon is started with: the environment filled up by the env file,
// without what says that the caller is a bot.
func starting(environ []string, vars []envfile.Var) []string {
	return client.DaemonEnv(envfile.Fill(environ, vars))
}
