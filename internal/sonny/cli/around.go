package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agent/client"
	"agent/client/modelsfile"
	"agent/client/termsafe"
	"agent/internal/place"
	"agent/internal/sonny/config"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/crash"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen"
	"agent/internal/sonny/screen/term"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// around is what most verbs need: where things are, and the settings that hold.
type around struct {
	log     *debugLog
	agent   string // ~/.agent
	sonny   string // ~/.agent/sonny
	target  client.Target
	socket  bool // the line or the environment names a socket: no daemon is started
	path    string
	config  *config.Config
	fault   error           // of config.toml, which is invalid: what there is can be shown, and nothing is made
	notices []config.Notice // of what is kept, and of the folder
	unused  []config.Notice // of settings; each reading of them says its own
	folder  *lead.Folder
	nowhere bool // the working folder is gone: folder is the home folder in its place
	state   config.State
	own     bool      // the folder's own files are left out
	tmux    term.Tmux // around the screen; asked for that alone
	guard   *crash.Guard
	mode    screen.Mode
	again   screen.Mode // asked for on the screen; "": the settings decide
	why     string      // of the plain mode: what it was chosen by; "" once that was said

	home      bool // the person's own agent is opened, where a lead was asked for
	noProject bool // its project.toml alone is left out, since it is invalid
}

// look finds out. folder "" is the current one, or that of --cd.
func (a *app) look(cmd *cobra.Command, folder string) (*around, error) {
	return a.lookAt(cmd, folder, false)
}

// lookToShow is look for what makes no bot: a config.toml that is invalid is said, and
// does not keep the person from seeing what there is, nor from stopping it.
func (a *app) lookToShow(cmd *cobra.Command) (*around, error) {
	return a.lookFrom(cmd, "")
}

// lookAnywhere is lookToShow for what needs no folder: it does in one that is gone, such
// as a worktree that was removed.
func (a *app) lookAnywhere(cmd *cobra.Command) (*around, error) {
	folder, err := a.orHome()
	if err != nil {
		return nil, err
	}
	w, err := a.lookFrom(cmd, folder)
	if w != nil {
		w.nowhere = folder != ""
	}
	return w, err
}

// orHome is "" for the working folder, and the home folder where that is gone and no
// other is named.
func (a *app) orHome() (string, error) {
	if _, err := os.Getwd(); a.flags.cd != "" || !errors.Is(err, fs.ErrNotExist) {
		return "", nil // what is wrong with it is said where it is looked for
	}
	return place.Home()
}

func (a *app) lookFrom(cmd *cobra.Command, folder string) (*around, error) {
	w, err := a.lookAt(cmd, folder, false)
	if w == nil || w.fault == nil || err != w.fault {
		return w, err
	}
	if err := w.readState(); err != nil {
		return nil, err
	}
	fmt.Fprintf(a.stderr, "sonny: %s\n", termsafe.OneLine(w.fault.Error()))
	w.target, err = a.target(w.config)
	return w, err
}

// lookOutside is look that reads nothing of the folder's own: for what asks first.
func (a *app) lookOutside(cmd *cobra.Command, folder string) (*around, error) {
	return a.lookAt(cmd, folder, true)
}

func (a *app) lookAt(cmd *cobra.Command, folder string, own bool) (*around, error) {
	dir, err := place.MakeAgentDir()
	if err != nil {
		return nil, err
	}
	w := &around{log: a.log, agent: dir, sonny: filepath.Join(dir, "sonny"), own: own, socket: a.flags.socket != "" || os.Getenv("AGENT_SOCKET") != ""}
	if err := place.MakePrivateDir(w.sonny); err != nil {
		return nil, err
	}
	if w.folder, err = a.locate(cmd.Context(), folder); err != nil {
		return nil, err
	}
	if err := a.settings(w); err != nil {
		return w, err
	}
	if why := w.folder.Astray; why != "" {
		w.notices = append(w.notices, config.Notice{Text: "this folder counts as one without git: " + why})
	}
	if err := w.readState(); err != nil {
		return nil, err
	}
	w.target, err = a.target(w.config)
	return w, err
}

// target is the daemon's: of the line, else of the environment, else of the settings.
func (a *app) target(c *config.Config) (client.Target, error) {
	store := a.flags.store
	if store == "" && os.Getenv("AGENT_STORE") == "" {
		store = c.Agent.Store
	}
	return client.Resolve(store, a.flags.socket)
}

func (a *app) locate(ctx context.Context, folder string) (*lead.Folder, error) {
	if folder == "" {
		folder = a.flags.cd
	}
	if folder == "" {
		folder = "."
	} else if a.flags.cd != "" && !filepath.IsAbs(folder) {
		folder = filepath.Join(a.flags.cd, folder)
	}
	f, err := lead.Locate(ctx, folder)
	var at *fs.PathError
	if a.flags.cd != "" && errors.As(err, &at) {
		return nil, usagef("--cd: %s", fault.Verb.Words(err))
	}
	return f, err
}

// told are all that the person is to be told.
func (w *around) told() []config.Notice { return append(slices.Clone(w.unused), w.notices...) }

// readState takes what Sonny remembers. A damaged file is a notice.
func (w *around) readState() error {
	state, notice, err := config.LoadState(filepath.Join(w.sonny, "state.json"))
	if notice != nil {
		w.notices = append(w.notices, *notice)
	}
	w.state = state
	return err
}

// settings resolves them in the order of precedence (sonny.md 2).
func (a *app) settings(w *around) (err error) {
	if w.path, err = config.Path(os.Environ()); err != nil {
		return err
	}
	var project *config.Project
	if !w.own && !w.noProject {
		if project, err = config.FindProject(w.folder.Home); err != nil {
			return err
		}
	}
	w.config, w.unused, err = config.Resolve(config.Sources{
		Path: w.path, Project: project, Environ: os.Environ(), Stated: a.stated(), Terminal: isTerminal(a.stdin), Further: reads,
	})
	if w.fault = nil; protocol.CodeOf(err) == protocol.ConfigInvalid {
		w.fault = err
	}
	return err
}

// stated are the settings that flags of the line state.
func (a *app) stated() []config.Stated {
	var out []config.Stated
	say := func(flag, key, value string) {
		if value != "" {
			out = append(out, config.Stated{Flag: flag, Key: key, Value: value})
		}
	}
	f := &a.flags
	for _, set := range f.set {
		key, value, _ := strings.Cut(set, "=")
		out = append(out, config.Stated{Key: strings.TrimSpace(key), Value: strings.TrimSpace(value)})
	}
	say("--model", "model", f.model)
	say("--effort", "effort", f.effort)
	say("--row", "row", f.row)
	say("--sandbox", "sandbox_mode", f.sandbox)
	say("--screen", "tui.screen", f.screen)
	say("--theme", "tui.theme", f.theme)
	say("--network", "sandbox_workspace_write.network_access", networkAccess[f.network])
	return out
}

// networkAccess are the words of --network as the setting has them.
var networkAccess = map[string]string{"on": "true", "off": "false"}

// lead are the settings of a new lead.
func (w *around) lead() (lead.Settings, error) {
	if w.fault != nil {
		return lead.Settings{}, w.fault
	}
	s, err := leadSettings(w.config)
	if w.folder.Path == "/" { // it is never one big writable folder (sonny.md 3.6)
		s.Sandbox = protocol.SandboxReadOnly
	}
	return s, err
}

// leadSettings are what a config says of new leads and their tasks.
func leadSettings(c *config.Config) (lead.Settings, error) {
	s := lead.Settings{
		Row: lead.Row(c.Row), Sandbox: c.SandboxMode, WritableRoots: c.Workspace.WritableRoots,
		Network: c.Workspace.Network, Git: c.Workspace.Git, NoTmpdir: c.Workspace.ExcludeTmpdir, NoTmp: c.Workspace.ExcludeTmp,
		UnixSockets: c.Workspace.UnixSockets,
		AutoExpiry:  c.ApprovalExpiry.Auto, ManualExpiry: c.ApprovalExpiry.Manual,
		JudgeDeadline: time.Duration(c.JudgeDeadlineMS) * time.Millisecond,
		WebSearch:     c.WebSearch, Disabled: c.Tools.Disabled,
		Tasks: lead.TaskSettings{
			Model: c.Tasks.Model, Effort: c.Tasks.Effort, InFolder: c.Tasks.In != "worktree",
			BudgetTokens: c.Tasks.BudgetTokens, SetupTimeout: c.Tasks.SetupTimeout,
		},
	}
	var err error
	s.Compaction, err = compaction(c.Compaction)
	return s, err
}

// link are the options for reaching the daemon.
func (w *around) link() connect.Options {
	c := w.config
	o := connect.Options{
		Target: w.target, Explicit: w.socket, Config: w.path, Logf: w.log.sayf,
		Walls: c.Agent.Wall, Protect: c.Agent.ProtectPath, Companions: companions(w),
	}
	if w.fault != nil {
		o.Explicit, o.Companions = true, nil // a daemon that it would start might lack a wall
	}
	o.Limits.MaxActive = c.Agent.MaxActive
	if c.Agent.IdleExit != nil {
		seconds := int64(c.Agent.IdleExit.Seconds())
		o.Limits.IdleExit = &seconds
	}
	return o
}

// models are those of the models file, as PROVIDER/MODEL.
func models() ([]string, error) {
	path, err := modelsfile.DefaultPath()
	if err != nil {
		return nil, err
	}
	list, _, err := modelsfile.Read(path)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(list))
	for _, m := range list {
		out = append(out, m.ID)
	}
	return out, nil
}

// modelNotes are the notes of the models file; none where it cannot be read.
func modelNotes() map[string]string {
	notes := map[string]string{}
	path, err := modelsfile.DefaultPath()
	if err != nil {
		return notes
	}
	list, _, err := modelsfile.Read(path)
	if err != nil {
		return notes // models said so
	}
	for _, m := range list {
		notes[m.ID] = m.Note
	}
	return notes
}

// companions are those that the daemon keeps for Sonny.
func companions(w *around) []protocol.CompanionSpec {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	var out []protocol.CompanionSpec
	for _, name := range companionNames {
		out = append(out, protocol.CompanionSpec{Name: name, Command: []string{self, "companion", name, "--" + settingsFlag, w.path}})
	}
	return out
}
