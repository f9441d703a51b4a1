package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agent/client"
	"agent/internal/place"
	"agent/internal/sonny/brief"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/setup"
	"agent/protocol"
)

// reachFor is how long a daemon is waited for, and askFor a provider.
const (
	reachFor = 5 * time.Second
	askFor   = 10 * time.Second
)

// reach looks for the daemon and starts none.
func (d *Doctor) reach(ctx context.Context) {
	if d.linkErr = d.o.ReachErr; d.linkErr != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	o := d.o.Reach
	o.Explicit, o.Companions = true, nil
	d.link, d.linkErr = connect.Open(ctx, o)
}

// noDaemon is why what only a daemon knows is not looked at.
func (d *Doctor) noDaemon() finding {
	if errors.Is(d.linkErr, protocol.DaemonUnavailable) {
		return skipf("no daemon runs; sonny starts one")
	}
	return skipf("the daemon does not answer; see daemon.protocol")
}

// version compares sonny, agent and the daemon.
func (d *Doctor) version(ctx context.Context) finding {
	if d.o.Agent == "" {
		return failed("no agent program: "+reason(d.o.AgentErr), "install agent beside sonny: both ship under one version")
	}
	agent, err := versionOf(ctx, d.o.Agent, "--version")
	if err != nil {
		return failed("the agent program does not run: "+err.Error(), "install agent beside sonny: both ship under one version")
	}
	agent = strings.TrimPrefix(agent, "agent ")
	if agent != d.o.Version {
		return failed(fmt.Sprintf("sonny is %s, agent is %s", d.o.Version, agent), "install both of one version")
	}
	if d.link == nil {
		return okf("sonny and agent are %s; no daemon was asked", d.o.Version)
	}
	if running := d.link.Ready.Version; running != d.o.Version {
		return warn(fmt.Sprintf("sonny and agent are %s, the running daemon is %s", d.o.Version, running), "agent shutdown; sonny starts the new one")
	}
	return okf("sonny, agent and the daemon are %s", d.o.Version)
}

// versionOf is the first line that a program prints for a flag.
func versionOf(ctx context.Context, program, flag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	out, err := brief.Command(ctx, program, flag).Output()
	line, _, _ := strings.Cut(string(out), "\n")
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end within %s", reachFor)
	}
	return strings.TrimSpace(line), err
}

// socket looks at the path's length and at who may reach the socket.
func (d *Doctor) socket(context.Context) finding {
	path := d.o.Reach.Target.Socket
	if err := place.CheckSocketPath(path); err != nil {
		return faultOf(Fail, err, "name a shorter store or socket: --store, --socket")
	}
	if err := place.CheckSocketDir(path); err != nil {
		return faultOf(Fail, err, "")
	}
	fits := fmt.Sprintf("its path has %d of %d bytes", len(path), place.MaxSocketPath())
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return okf("no socket is there; %s", fits)
	case err != nil:
		return failed("the socket cannot be looked at: "+reason(err), "see to it that the store's folder is yours")
	case info.Mode().Type() != fs.ModeSocket:
		return failed("what stands at the socket's path is no socket", "move it away; sonny starts a daemon then")
	case !mine(info):
		return failed("the socket belongs to another user", "remove it, or name another with --socket")
	case info.Mode().Perm()&0o077 != 0:
		return failed(fmt.Sprintf("others may reach the socket (mode %04o)", info.Mode().Perm()), "agent shutdown; sonny starts a daemon anew")
	}
	return okf("yours alone; %s", fits)
}

// storeMode looks at the store's files.
func (d *Doctor) storeMode(context.Context) finding {
	store := d.o.Reach.Target.Store
	var loose []string
	var mends []mend
	there := false
	for _, name := range []string{"", "-wal", "-shm"} {
		path := store + name
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return failed("the store cannot be looked at: "+reason(err), "see to it that its folder is yours")
		case !info.Mode().IsRegular():
			return failed(filepath.Base(path)+" is no regular file", "move it away, or name another store with --store")
		case !mine(info):
			return failed(filepath.Base(path)+" belongs to another user", "make it yours, or name another store with --store")
		case info.Mode().Perm()&0o077 != 0:
			loose = append(loose, fmt.Sprintf("%s has mode %04o", filepath.Base(path), info.Mode().Perm()))
			mends = append(mends, mend{"make " + filepath.Base(path) + " 0600?", func(context.Context) error { return tighten(path) }})
		}
		there = true
	}
	switch {
	case len(loose) > 0:
		return failed("others may read the store: "+strings.Join(loose, ", "), "chmod 600 on each of them").mend(mends...)
	case !there:
		return okf("there is no store yet")
	}
	return okf("the store is yours alone")
}

func (d *Doctor) daemonProtocol(context.Context) finding {
	switch {
	case d.link != nil:
		return okf("the daemon answers, protocol %d", d.link.Ready.Protocol)
	case errors.Is(d.linkErr, protocol.DaemonUnavailable):
		if info, err := os.Lstat(d.o.Reach.Target.Socket); err == nil && info.Mode().Type() == fs.ModeSocket {
			return warn("a daemon died: its socket stands and nobody answers", "sonny starts it again; agent start does too")
		}
		return d.noDaemon()
	}
	f := faultOf(Fail, d.linkErr, "agent shutdown; sonny starts a daemon anew")
	if code := protocol.CodeOf(d.linkErr); code != "" {
		f.summary = string(code) + ": " + f.summary
	}
	return f
}

// daemonOptions compares what the daemon keeps from bots with what Sonny wants of one.
func (d *Doctor) daemonOptions(context.Context) finding {
	if d.link == nil {
		return d.noDaemon()
	}
	var lacks []string
	for _, m := range d.link.Missing {
		kind := "protects no "
		if m.Wall {
			kind = "walls no "
		}
		lacks = append(lacks, kind+m.Path)
	}
	if len(lacks) > 0 {
		return warn("daemon_options: the daemon lacks what sonny starts one with; a bot that could write there is refused",
			"agent shutdown; sonny starts it with them").with("it " + listed(lacks))
	}
	return okf("walls and protected paths are as sonny wants them")
}

func (d *Doctor) daemonPaused(context.Context) finding {
	switch {
	case d.link == nil:
		return d.noDaemon()
	case d.link.Ready.Paused == nil:
		return okf("not paused")
	}
	p := d.link.Ready.Paused
	summary := "paused since " + time.UnixMilli(p.SinceMS).UTC().Format(time.RFC3339)
	if p.By != "" {
		summary += " by " + fault.Puller(p.By, p.ByID)
	}
	return warn(summary+"; nothing runs", "sonny unpause")
}

// providersReach asks each provider for its models, through the daemon, or one that lives
// for this question alone.
func (d *Doctor) providersReach(ctx context.Context) finding {
	switch {
	case d.o.Offline:
		return skipf("nothing is asked of a provider with --offline")
	case len(client.ImpliedProviders(d.environ)) == 0 && d.link == nil:
		return skipf("no provider is connected; see providers")
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	d.lists, d.listErr = d.ask(ctx)
	if d.listErr != nil {
		return faultOf(Fail, d.listErr, "see providers and the daemon's log")
	}
	var answers, faults []string
	for _, name := range slices.Sorted(maps.Keys(d.lists.Providers)) {
		list := d.lists.Providers[name]
		if list.Error != "" {
			faults = append(faults, fmt.Sprintf("%s: %s: %s", name, list.Error, list.Detail))
			continue
		}
		answers = append(answers, name+" lists "+counted(len(list.Models), "model"))
	}
	switch {
	case len(faults) == 0:
		return okf("%s", listed(answers))
	case len(answers) == 0:
		return failed(faults[0], "look at the key (sonny setup) and at the network").with(strings.Join(faults, "; "))
	}
	return warn(faults[0], "look at the key (sonny setup) and at the network").with(strings.Join(append(answers, faults...), "; "))
}

func (d *Doctor) ask(ctx context.Context) (*protocol.ProviderModels, error) {
	if d.link != nil {
		return d.link.ProviderModels(ctx)
	}
	if d.o.Agent == "" {
		return nil, d.o.AgentErr
	}
	dir, err := os.MkdirTemp("", "sonny-doctor-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var args []string
	for _, spec := range client.ImpliedProviders(d.environ) {
		args = append(args, "--provider="+spec)
	}
	c, end, err := setup.Throwaway(ctx, d.o.Agent, dir, d.environ, args...)
	if err != nil {
		return nil, err
	}
	defer end()
	return c.ProviderModels(ctx)
}

// knownCompanions are all that sonny has (companions.md 1).
var knownCompanions = []string{"approver", "lookout", "toolhost"}

func (d *Doctor) companions(ctx context.Context) finding {
	var missing []string
	for _, name := range knownCompanions {
		if !slices.Contains(d.o.Companions, name) {
			missing = append(missing, name)
		}
	}
	without := ""
	if len(missing) > 0 {
		without = "not in this build: " + strings.Join(missing, ", ")
	}
	switch {
	case len(d.o.Companions) == 0:
		return skipf("this build of sonny has no companions").with(without)
	case d.link == nil:
		return d.noDaemon().with(without)
	}
	kept, err := d.link.Companions(ctx)
	if err != nil {
		return faultOf(Fail, err, "agent companions lists them").with(without)
	}
	var down, unset, up []string
	for _, name := range d.o.Companions {
		switch state, runs := companionState(kept, name); {
		case runs:
			up = append(up, name)
		case state == "":
			unset = append(unset, name)
		default:
			down = append(down, name+" "+state)
		}
	}
	switch {
	case len(down) > 0:
		return failed(listed(down), "agent companions --restart NAME").with(without)
	case len(unset) > 0:
		return warn("the daemon keeps no "+strings.Join(unset, " and no "), "open sonny: it has the daemon keep them").with(without)
	}
	return okf("up: %s", listed(up)).with(without)
}

// companionState says why a companion does not run: "" where the daemon has none of the
// name.
func companionState(kept []protocol.Companion, name string) (string, bool) {
	at := slices.IndexFunc(kept, func(c protocol.Companion) bool { return c.Name == name })
	switch {
	case at < 0:
		return "", false
	case kept[at].PID != nil:
		return "", true
	}
	state := "is down"
	if line := lastLine(kept[at].Log); line != "" {
		state += ", its last line: " + line
	}
	return state, false
}

// lastLine is the newest line of a log.
func lastLine(path string) string {
	const most = 4 << 10
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err != nil || end > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	tail, _ := io.ReadAll(io.LimitReader(f, most))
	lines := strings.Split(strings.TrimSpace(string(tail)), "\n")
	return lines[len(lines)-1]
}

// judge is the model that the automatic approver asks.
func (d *Doctor) judge(context.Context) finding {
	model := ""
	if d.o.Config != nil {
		model = d.o.Config.JudgeModel
	}
	provider, id, _ := strings.Cut(model, "/")
	switch {
	case model == "":
		return okf("the small model of the judged bot's provider, else the bot's own")
	case d.lists == nil:
		return okf("%s; its provider was not asked", model)
	}
	list, there := d.lists.Providers[provider]
	switch {
	case !there:
		return failed(model+": no provider "+provider+" is connected", "sonny config set judge_model PROVIDER/MODEL")
	case list.Error != "":
		return warn(model+": its provider gave no list", "see providers.reach")
	case !slices.ContainsFunc(list.Models, func(m protocol.ModelInfo) bool { return m.ID == id }):
		return warn(model+" is not on its provider's list", "sonny config set judge_model PROVIDER/MODEL")
	}
	return okf("%s, which its provider lists", model)
}
