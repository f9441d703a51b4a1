package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agent/client"
	"agent/internal/approver"
	"agent/internal/place"
	"agent/internal/sonny/config"
	"agent/internal/sonny/host"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// companionNames are those that Sonny has the daemon keep (companions.md 1).
var companionNames = []string{"approver", "toolhost"}

// settingsFlag is the flag by which a companion is told which config.toml it goes by.
// Its environment is the daemon's, which somebody else may have started.
const settingsFlag = "settings"

// companionRunning is what a companion says that finds another in its place.
const companionRunning protocol.Code = "companion_running"

// companionVerb is what the daemon starts. It is not for people.
func (a *app) companionVerb() *cobra.Command {
	cmd := &cobra.Command{Use: "companion", Short: "what the daemon keeps running for Sonny", Hidden: true, Args: cobra.NoArgs, RunE: needsOne}
	cmd.AddCommand(
		a.companion("approver", (*companion).approve),
		a.companion("toolhost", (*companion).serveTools),
	)
	return cmd
}

func (a *app) companion(name string, serve func(*companion, context.Context) error) *cobra.Command {
	var settings string
	cmd := &cobra.Command{
		Use: name, Short: "started by the daemon", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.newCompanion(name, settings)
			if err != nil {
				return err
			}
			defer c.client.Close()
			return c.run(cmd.Context(), func(ctx context.Context) error { return serve(c, ctx) })
		},
	}
	cmd.Flags().StringVar(&settings, settingsFlag, "", "`PATH` of config.toml (~/.agent/config.toml)")
	return cmd
}

// companion is one under way.
type companion struct {
	a      *app
	name   string
	target client.Target
	client *client.Client
	agent  string // ~/.agent
	home   string
	watch  *config.Watch
}

// newCompanion reads what the daemon has told: AGENT_SOCKET and AGENT_STORE.
func (a *app) newCompanion(name, settings string) (*companion, error) {
	if os.Getenv("AGENT_COMPANION") != name || os.Getenv("AGENT_SOCKET") == "" || os.Getenv("AGENT_STORE") == "" {
		return nil, usagef("the daemon starts its companions itself; sonny has it do so when it opens")
	}
	c := &companion{a: a, name: name, target: client.Target{Store: os.Getenv("AGENT_STORE"), Socket: os.Getenv("AGENT_SOCKET")}}
	var err error
	if c.agent, err = place.MakeAgentDir(); err != nil {
		return nil, err
	}
	if c.home, err = place.Home(); err != nil {
		return nil, err
	}
	if settings == "" {
		settings = filepath.Join(c.agent, "config.toml")
	}
	c.watch = config.NewWatch(settings)
	c.client = &client.Client{Target: c.target, Logf: c.logf}
	return c, nil
}

func (c *companion) logf(format string, args ...any) {
	fmt.Fprintf(c.a.stderr, format+"\n", args...)
}

var errDaemonGone = protocol.Fail(protocol.DaemonDisconnected, "the daemon is gone")

// run serves while the daemon is there and this companion is the only one of its kind.
func (c *companion) run(ctx context.Context, serve func(context.Context) error) error {
	session, err := c.client.Session(ctx)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for _, err := range session.Notifications() {
			if err != nil {
				break
			}
		}
		end(errDaemonGone)
	}()
	defer func() { session.Close(); <-heard }()
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	err = serve(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, errDaemonGone) || errors.Is(err, context.Canceled) {
		return nil // it has nothing more to do
	}
	return err
}

// lock takes the companion's place. One that is taken is waited for, so that the
// daemon does not start this one again and again.
func (c *companion) lock(ctx context.Context) (*place.OwnerLock, error) {
	dir := c.target.Store + ".companions"
	if err := place.MakePrivateDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, c.name+".lock")
	lock, err := place.Lock(path, string(companionRunning))
	var held *place.Error
	if !errors.As(err, &held) || held.Code != string(companionRunning) {
		return lock, err
	}
	c.logf("%s: another %s of this store runs; waiting for its end", companionRunning, c.name)
	taken := make(chan error, 1)
	go func() {
		var err error
		lock, err = place.WaitLock(path)
		taken <- err
	}()
	select {
	case err := <-taken:
		return lock, err
	case <-ctx.Done(): // the process ends, and with it the waiting
		return nil, context.Cause(ctx)
	}
}

// serveTools is the tool host.
func (c *companion) serveTools(ctx context.Context) error {
	return host.Serve(ctx, host.Options{
		Client: c.client, Store: c.target.Store, Agent: c.agent, Home: c.home,
		Settings: c.hostSettings, Logf: c.logf,
	})
}

// hostSettings are what holds for bots of a folder.
func (c *companion) hostSettings(folder string) (host.Settings, error) {
	cfg, err := c.watch.Config()
	if err == nil && folder != "" {
		cfg, err = c.forFolder(folder)
	}
	n := &cfg.Notifications
	s := host.Settings{
		TaskUpdates: cfg.TaskUpdates, Memory: cfg.Memory.Enabled, Panes: cfg.Panes.Enabled, PaneSplit: cfg.Panes.Split,
		Texts:  texts(cfg),
		Notify: host.Notify{On: n.On, When: n.When, MinTurn: n.MinTurn, Command: n.Command, Content: n.Content},
	}
	if err != nil || folder == "" {
		return s, err
	}
	s.Lead, err = leadSettings(cfg)
	return s, err
}

// forFolder takes in what the folder's project.toml may set of tasks, unless the person
// opened it without its files.
func (c *companion) forFolder(folder string) (*config.Config, error) {
	cfg, err := c.watch.Config()
	without, trustErr := config.OpenedWithout(filepath.Join(c.agent, "sonny", "trust.json"), folder)
	if err != nil || trustErr != nil || without {
		return cfg, errors.Join(err, trustErr)
	}
	project, err := config.FindProject(folder)
	if err != nil || project == nil {
		return cfg, err
	}
	cfg, _, err = config.Resolve(config.Sources{Path: c.watch.Path(), Project: project})
	return cfg, err
}

// lookEvery is how often the approver looks at its settings, so that a change is seen
// within ten seconds (sonny.md 20).
const lookEvery = 5 * time.Second

// autoTag is the tag that the approver serves: the gate of the row auto.
const autoTag = "auto"

// approve is the automatic approver. It serves anew when what the settings say of the
// judge changes; settings that it cannot use serve nobody, so that calls expire.
func (c *companion) approve(ctx context.Context) error {
	for {
		judge, err := c.judge()
		if err != nil {
			c.logf("%v", err)
		}
		within, end := context.WithCancel(ctx)
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			defer end()
			c.untilOther(within, judge)
		}()
		if err == nil {
			err = approver.Serve(within, c.client, judge.options(c.report))
			var unusable approver.Unusable
			if errors.As(err, &unusable) {
				c.logf("%v", err)
				<-changed
			}
		} else {
			<-changed
		}
		over := within.Err() == nil // it was not the settings that ended it
		end()
		<-changed
		if over || ctx.Err() != nil {
			return err
		}
	}
}

// report prints one of the approver's lines into the companion's log.
func (c *companion) report(line any) {
	if text, err := protocol.Append(nil, line); err == nil {
		fmt.Fprintf(c.a.stdout, "%s\n", text)
	}
}

// judge is what the settings say of it.
type judge struct {
	model, note string
	deadline    time.Duration
}

func (j *judge) options(report func(any)) approver.Options {
	return approver.Options{Tag: autoTag, Judge: j.model, Note: j.note, Deadline: j.deadline, Report: report}
}

// maxNote bounds the person's note to the judge, in bytes.
const maxNote = 8 << 10

func (c *companion) judge() (*judge, error) {
	cfg, err := c.watch.Config()
	if err != nil {
		return nil, err
	}
	j := &judge{model: cfg.JudgeModel, deadline: time.Duration(cfg.JudgeDeadlineMS) * time.Millisecond}
	j.note, err = judgeNote(cfg.JudgeNote)
	return j, err
}

// judgeNote is the text of the note that a setting names; "" for none.
func judgeNote(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	note, err := readText(path)
	if err == nil && len(note) > maxNote {
		err = protocol.Fail(protocol.ConfigInvalid, path+" is longer than 8 KiB")
	}
	return note, err
}

// untilOther waits until the settings say something else of the judge, or ctx ends.
// before nil: until they say anything that can be used.
func (c *companion) untilOther(ctx context.Context, before *judge) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := c.judge()
		if (err != nil) != (before == nil) || err == nil && *now != *before {
			return
		}
	}
}
