package lead

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/client"
	"agent/client/instructions"
	"agent/client/worktree"
	"agent/internal/place"
	"agent/internal/sonny/host/tools"
	"agent/internal/sonny/repo"
	"agent/protocol"
)

// TaskRequest is what a lead, or the person, asks for when a task is to be started.
// Zero fields are not said.
type TaskRequest struct {
	Name         string // without the project's prefix
	Brief        string
	Role         string
	Model        string // PROVIDER/MODEL
	Effort       string
	Worktree     *bool // nil: as the settings have it, in a git repository
	Base         string
	Folder       string // in the lead's writable folders; relative ones are in its workspace
	BudgetTokens int64

	// Sandbox and Network narrow what the lead has and never widen it.
	Sandbox string
	Network *bool
}

// TaskStarter starts tasks under one lead. Its fields are set before it is used, and
// are not changed by it.
type TaskStarter struct {
	Client  *client.Client
	Store   string        // the store's path: worktrees lie beside it
	Sonny   string        // ~/.agent/sonny
	Lead    *protocol.Bot // as it is now
	Project string
	Turn    int64     // the lead's that asks; 0: the person does
	Repo    repo.Repo // the lead's, as it was found when the lead was made; none: not known

	Settings Settings

	// Compose gives the instructions of a task.
	Compose func(TaskText) (*instructions.Composed, error)

	// NoFolderFiles is set where the person opened the folder without its own files
	// (sonny.md 3.5): no setup of its runs.
	NoFolderFiles bool

	Keys   []string  // names of variables that a setup does not get
	Output io.Writer // of a setup; nil: nowhere
}

// TaskText says for what a task's instructions are composed.
type TaskText struct {
	Workspace string
	Source    string // the top of the checkout that its worktree was made of; "" without one
	Top       string // of the worktree that Workspace lies in; "" elsewhere
	Project   string
	Role      string
	NoFiles   bool // without the folder's own
}

// TaskStart is a start that has been resolved: everything that will happen, by its
// real names. Nothing has happened yet. What is shown for a verdict is Shown; Do does
// just that.
type TaskStart struct {
	Bot          string
	Brief        string
	Role         string
	Model        string
	Effort       string
	BudgetTokens int64
	Workspace    string           // of the lead, or the folder asked for; that of a worktree is known once it is made
	Tree         *worktree.Plan   // nil: it shares the folder
	Setup        *worktree.Script // nil: none runs
	Sandbox      string
	Network      bool
	Uncommitted  int // paths of the source with changes that the worktree will not have

	by    *TaskStarter
	tools []string // nil: the lead's
	held  *held    // while Do runs
}

// TaskStarted is the answer to a start.
type TaskStarted struct {
	Bot         string `json:"bot"`
	BotID       int64  `json:"bot_id"`
	Turn        int64  `json:"turn"`
	Handle      string `json:"handle"`
	Workspace   string `json:"workspace"`
	Branch      string `json:"branch,omitempty"`
	Setup       string `json:"setup"` // ran, or none
	Uncommitted int    `json:"uncommitted"`
	Note        string `json:"note,omitempty"`
}

// The codes that are not of the daemon.
const (
	invalidArguments protocol.Code = "invalid_arguments"
	targetChanged    protocol.Code = "target_changed"
	outcomeUnknown   protocol.Code = "outcome_unknown"
)

// Resolve checks a request and resolves its names. It makes nothing, and runs nothing
// that an agent could have configured. Errors: invalid_arguments, invalid_name,
// bot_exists, worktree_exists, worktree_needs_git, worktree_failed, setup_failed,
// profile_not_found and those of instructions.
func (s *TaskStarter) Resolve(ctx context.Context, r TaskRequest) (*TaskStart, error) {
	t := &TaskStart{
		Bot: s.Project + "." + r.Name, Brief: r.Brief, Role: r.Role, BudgetTokens: r.BudgetTokens,
		Sandbox: s.sandbox(r.Sandbox), Network: s.Lead.Network && (r.Network == nil || *r.Network), by: s,
	}
	if err := s.checkName(ctx, r.Name, t.Bot); err != nil {
		return nil, err
	}
	if strings.TrimSpace(r.Brief) == "" || len(r.Brief) > maxBrief {
		return nil, protocol.Fail(invalidArguments, fmt.Sprintf("brief: it is 1 to %d bytes; the task knows nothing but that", maxBrief))
	}
	if r.BudgetTokens != 0 && r.BudgetTokens < minBudget {
		return nil, protocol.Fail(invalidArguments, fmt.Sprintf("budget_tokens: at least %d", minBudget))
	}
	var err error
	if t.Workspace, err = s.folder(r.Folder); err != nil {
		return nil, err
	}
	if err := s.plan(ctx, t, r); err != nil {
		return nil, err
	}
	return t, s.takeRole(t, r)
}

// The bounds of a brief, in bytes, and of a budget, in tokens.
const (
	maxBrief  = 64 << 10
	minBudget = 1000
)

// checkName sees to it that a bot, a folder and a branch can have the name, and that
// no bot has it. A task's name is never a lead's.
func (s *TaskStarter) checkName(ctx context.Context, name, bot string) error {
	for _, n := range []string{name, bot} {
		if worktree.CheckName(n) != nil {
			return protocol.Fail(protocol.InvalidName, fmt.Sprintf("%q is no name for a task: with its project's prefix 1 to 128 of A-Z a-z 0-9 - _ ., "+
				"it begins with neither - nor ., has no .. in it, and ends with neither . nor .lock", name))
		}
	}
	if isLeadOf(bot, s.Project) {
		return protocol.Fail(protocol.InvalidName, bot+" is a lead's name; give the task another")
	}
	switch _, err := s.Client.Inspect(ctx, bot); {
	case err == nil:
		return protocol.Fail(protocol.BotExists, bot+" is there already; take another name, or write to it")
	case !errors.Is(err, protocol.BotNotFound):
		return err
	}
	return nil
}

// sandbox is the lead's mode, or a narrower one.
func (s *TaskStarter) sandbox(asked string) string {
	has := s.Lead.Sandbox
	if has == "" {
		has = protocol.SandboxFull
	}
	width := []string{protocol.SandboxReadOnly, protocol.SandboxWorkspace, protocol.SandboxFull}
	if i := slices.Index(width, asked); i >= 0 && i < slices.Index(width, has) {
		return asked
	}
	return has
}

// confined reports whether the lead's commands run in a sandbox.
func (s *TaskStarter) confined() bool { return s.sandbox("") != protocol.SandboxFull }

// writable are the folders that the lead may write.
func (s *TaskStarter) writable() []string {
	roots := slices.Clone(s.Lead.WritableRoots)
	if s.Lead.Workspace != nil && s.sandbox("") != protocol.SandboxReadOnly {
		roots = append(roots, *s.Lead.Workspace)
	}
	return roots
}

// folder is where a task without a worktree works, or what its worktree is made of.
func (s *TaskStarter) folder(asked string) (string, error) {
	if s.Lead.Workspace == nil {
		return "", protocol.Fail(invalidArguments, "folder: "+s.Lead.Name+" works in no folder, and neither could a task")
	}
	if asked == "" {
		return *s.Lead.Workspace, FolderLost(s.Lead)
	}
	if !filepath.IsAbs(asked) {
		asked = filepath.Join(*s.Lead.Workspace, asked)
	}
	real, err := filepath.EvalSymlinks(asked)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(real); err == nil && !info.IsDir() {
			err = errors.New("it is no folder")
		}
	}
	if err != nil {
		return "", protocol.Fail(invalidArguments, "folder: "+asked+" cannot be worked in: "+reasonOf(err))
	}
	within := func(dir string) bool { return inside(dir, real) }
	if s.confined() && !slices.ContainsFunc(append(s.writable(), *s.Lead.Workspace), within) {
		return "", protocol.Fail(invalidArguments, "folder: "+real+" is not in a folder that "+s.Lead.Name+" may write")
	}
	if slices.Contains(strings.Split(real, "/"), ".git") {
		return "", protocol.Fail(invalidArguments, "folder: "+real+" is in a git folder; name a folder of the checkout")
	}
	return real, nil
}

// inside reports whether a path is a folder or lies in it.
func inside(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func reasonOf(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// plan looks for the worktree that the task is to have. Where none was asked for by
// name and none can be made the task works in the folder.
func (s *TaskStarter) plan(ctx context.Context, t *TaskStart, r TaskRequest) error {
	asked := r.Worktree != nil && *r.Worktree
	if r.Worktree == nil && s.Settings.Tasks.InFolder || r.Worktree != nil && !*r.Worktree {
		if r.Base != "" {
			return protocol.Fail(invalidArguments, "base: only a task with a worktree of its own begins at a commit")
		}
		return nil
	}
	err := s.mayHaveTrees()
	if err == nil {
		t.Tree, err = worktree.Find(ctx, worktree.Request{
			Name: r.Name, Branch: "agent/" + t.Bot, Folder: t.Workspace, Base: r.Base,
			Root: filepath.Join(worktree.RootOf(s.Store), s.Project), Started: t.started,
			Trust: func(p *worktree.Plan) error { return s.trust(ctx, p) },
		})
	}
	if errors.Is(err, protocol.WorktreeNeedsGit) && !asked && r.Base == "" {
		t.Tree = nil
		return nil
	}
	if err != nil {
		return err
	}
	if !s.NoFolderFiles {
		if t.Setup, err = t.Tree.Script(); err != nil {
			return err
		}
	}
	t.Uncommitted, err = t.Tree.Uncommitted(ctx)
	return err
}

// mayHaveTrees refuses worktrees where the lead's writable folders leave them out: a
// bot that a bot makes only narrows.
func (s *TaskStarter) mayHaveTrees() error {
	root := place.Real(filepath.Join(worktree.RootOf(s.Store), s.Project))
	holds := func(dir string) bool { return inside(dir, root) }
	if !s.confined() || slices.ContainsFunc(s.writable(), holds) {
		return nil
	}
	return protocol.Fail(protocol.WorktreeNeedsGit, "the worktrees of "+s.Project+" would lie in "+root+", which "+s.Lead.Name+
		" may not write, so that a task of it could not either; let it work in the folder")
}

// trust refuses a repository whose git folder a sandboxed agent could have configured:
// a checkout runs the filters that its config names, as the person (sonny.md 5.1).
// The sandbox keeps the .git at the top of a root, and a git folder that was given as a
// root. A plain folder that was given may have been made to look like one since. What any
// other bot may write counts as well.
func (s *TaskStarter) trust(ctx context.Context, p *worktree.Plan) error {
	if err := worktree.Trust(s.Client.Bots(ctx), p); err != nil {
		return err
	}
	if !s.confined() {
		return nil
	}
	own := p.GitDir == p.Common || filepath.Dir(p.GitDir) == filepath.Join(p.Common, "worktrees")
	for _, root := range append(s.writable(), *s.Lead.Workspace) {
		top := filepath.Join(root, ".git")
		info, err := os.Lstat(top)
		given := p.Common == root && (filepath.Base(root) == ".git" || p.Common == s.Repo.Common)
		if own && (given || p.Common == top && err == nil && info.IsDir()) {
			return nil
		}
	}
	return protocol.Fail(protocol.WorktreeNeedsGit, "the repository of "+p.Source+" is configured by "+p.Common+
		", which agents may write; a worktree is made only from a repository at the top of a folder of "+s.Lead.Name+" or one whose git folder it was given")
}

// takeRole takes the role's model, effort and tools where none were named. That the
// instructions can be composed is seen before anything is made.
func (s *TaskStarter) takeRole(t *TaskStart, r TaskRequest) error {
	composed, err := s.Compose(s.textOf(t, t.Workspace))
	if err != nil {
		return err
	}
	model, effort := "", ""
	if role := composed.Role; role != nil {
		model, effort = role.Model, role.Effort
		t.tools = s.roleTools(role.Tools)
	}
	t.Model = first(r.Model, model, s.Settings.Tasks.Model, s.Lead.ModelRef())
	lead := ""
	if s.Lead.Reasoning != nil && t.Model == s.Lead.ModelRef() {
		lead = *s.Lead.Reasoning
	}
	t.Effort = first(r.Effort, effort, s.Settings.Tasks.Effort, lead)
	if _, _, ok := protocol.ParseModelRef(t.Model); !ok {
		return protocol.Fail(invalidArguments, fmt.Sprintf("model: %q is not PROVIDER/MODEL", t.Model))
	}
	if t.Effort != "" && t.Effort != "default" && !protocol.ValidReasoning(t.Effort) {
		return protocol.Fail(invalidArguments, fmt.Sprintf("effort: %q is not default, low, medium, high, xhigh or max", t.Effort))
	}
	if t.BudgetTokens == 0 {
		t.BudgetTokens = s.Settings.Tasks.BudgetTokens
	}
	return nil
}

func first(of ...string) string {
	for _, text := range of {
		if text != "" {
			return text
		}
	}
	return ""
}

// textOf says for what the task's instructions are composed, when it works in a
// folder.
func (s *TaskStarter) textOf(t *TaskStart, workspace string) TaskText {
	text := TaskText{
		Workspace: workspace, Top: worktree.TopAt(worktree.RootOf(s.Store), workspace),
		Project: s.Project, Role: t.Role, NoFiles: s.NoFolderFiles,
	}
	if t.Tree != nil {
		text.Source = t.Tree.Source
	}
	return text
}

// roleTools are those tools of a role that the lead has too: a task only narrows.
// nil: the role names none.
func (s *TaskStarter) roleTools(named []string) []string {
	if named == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(named), func(name string) bool {
		return !slices.Contains(s.Lead.Tools, name) && !serves(s.Lead, name)
	})
}

// NeedsVerdict reports whether the start waits for one: it makes a worktree, or runs a
// setup.
func (t *TaskStart) NeedsVerdict() bool { return t.Tree != nil }

// create is what is sent for the task. tree is nil where it shares the folder.
func (t *TaskStart) create(tree *worktree.Tree, text *instructions.Composed) *protocol.Create {
	s := t.by
	c := &protocol.Create{
		Bot: t.Bot, Model: t.Model, Instructions: text.Text, Workspace: t.Workspace,
		CreatedBy: s.Lead.Name, CreatedByID: s.Lead.ID, CompactionInstructions: s.Settings.Compaction,
		Tools: t.daemonTools(), ClientTools: t.served(), Sandbox: t.Sandbox,
	}
	if t.Effort != "default" {
		c.Reasoning = t.Effort
	}
	if t.BudgetTokens != 0 {
		c.BudgetTokens = protocol.Set(t.BudgetTokens)
	}
	if s.Settings.WebSearch == "cached" {
		c.Settings = &protocol.Settings{WebSearch: protocol.Set("cached")}
	}
	if t.Sandbox != protocol.SandboxFull {
		c.Network = protocol.Set(t.Network)
	}
	if tree != nil {
		c.Workspace = tree.Workspace
		if t.Sandbox == protocol.SandboxWorkspace {
			c.WritableRoots = s.treeRoots(tree)
		}
	}
	return c
}

// treeRoots are the worktree's roots, as far as the lead has them.
func (s *TaskStarter) treeRoots(tree *worktree.Tree) []string {
	if !s.confined() {
		return tree.Roots()
	}
	return slices.DeleteFunc(tree.Roots(), func(root string) bool {
		return !slices.ContainsFunc(s.writable(), func(dir string) bool { return inside(dir, root) })
	})
}

// daemonTools are those of the lead's that the daemon answers itself.
func (t *TaskStart) daemonTools() []string {
	all := t.by.Lead.Tools
	if t.tools != nil {
		all = t.tools
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return serves(t.by.Lead, name) })
}

// serves reports whether one of a bot's tools is a client's.
func serves(b *protocol.Bot, tool string) bool {
	return slices.ContainsFunc(b.ClientTools, func(c protocol.ClientTool) bool { return c.Name == tool })
}

// served are the tool host's for a task, as far as the lead has any of them.
func (t *TaskStart) served() []protocol.ClientTool {
	return slices.DeleteFunc(tools.For(tools.Task, t.by.Settings.Tasks.SetupTimeout), func(c protocol.ClientTool) bool {
		has := slices.ContainsFunc(t.by.Lead.ClientTools, func(l protocol.ClientTool) bool { return l.Name == c.Name && l.Tag == c.Tag })
		return !has || t.tools != nil && !slices.Contains(t.tools, c.Name)
	})
}
