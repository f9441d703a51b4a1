package lead

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/client"
	"agent/client/worktree"
	"agent/internal/place"
	"agent/protocol"
)

// Plan is a lead that is about to be made. Nothing is made until Make.
type Plan struct {
	Folder  *Folder
	Project string
	Name    string // of the bot
	Store   string // the store's path: worktrees lie beside it

	Model, Effort string
	Settings      Settings

	Instructions string
	Tools        []string // those that the daemon registers
	ClientTools  []protocol.ClientTool
	Only         []string // the names of both kinds that it gets; nil: all
	Rules        *protocol.Rules
}

// leadTools are the daemon's tools that a lead gets, where the daemon has them.
var leadTools = []string{
	"shell", "write_stdin", "read", "write", "edit", "apply_patch", "note", "history", "wait", "web_fetch", "web_search",
}

// tools are the lead's: the daemon's but for those that the settings leave out.
func (p *Plan) tools() []string {
	left := slices.Clone(p.Settings.Disabled)
	switch p.Settings.WebSearch {
	case "cached":
		left = append(left, "web_fetch")
	case "disabled":
		left = append(left, "web_fetch", "web_search")
	}
	return slices.DeleteFunc(slices.Clone(leadTools), func(name string) bool {
		return !slices.Contains(p.Tools, name) || slices.Contains(left, name) || p.left(name)
	})
}

// clientTools are Sonny's own, but for those that the settings leave out.
func (p *Plan) clientTools() []protocol.ClientTool {
	return slices.DeleteFunc(slices.Clone(p.ClientTools), func(t protocol.ClientTool) bool {
		return slices.Contains(p.Settings.Disabled, t.Name) || p.left(t.Name)
	})
}

// left reports whether a tool is none of those that were named.
func (p *Plan) left(name string) bool { return p.Only != nil && !slices.Contains(p.Only, name) }

// Sandbox is the mode that the lead gets.
func (p *Plan) Sandbox() string {
	if p.Settings.Sandbox != "" {
		return p.Settings.Sandbox
	}
	return p.Settings.Row.Sandbox()
}

// WorktreesDir is where the project's worktrees lie.
func (p *Plan) WorktreesDir() string { return filepath.Join(worktree.RootOf(p.Store), p.Project) }

// Roots are the folders besides the workspace that the lead may write, in the order
// that they are sent (sonny.md 4): the settings', the repository's git folders, and
// where its tasks' worktrees lie, so that a task only narrows.
func (p *Plan) Roots() []string {
	if p.Sandbox() != protocol.SandboxWorkspace {
		return nil
	}
	roots := slices.Clone(p.Settings.WritableRoots)
	if p.Settings.Git && p.Folder.Repo.There() {
		roots = append(roots, p.Folder.Repo.Common)
		if p.Folder.Repo.Linked() {
			roots = append(roots, p.Folder.Repo.GitDir)
		}
		roots = append(roots, p.WorktreesDir())
	}
	return roots
}

// Create is what is sent. The folder of the worktrees is not made by it.
func (p *Plan) Create() *protocol.Create {
	s := &p.Settings
	c := &protocol.Create{
		Bot: p.Name, Model: p.Model, Instructions: p.Instructions,
		Tools: p.tools(), ClientTools: p.clientTools(),
		Workspace: p.Folder.Path, CompactionInstructions: s.Compaction,
		Sandbox: p.Sandbox(), WritableRoots: p.Roots(),
		Rules: p.Rules,
	}
	if p.Effort != "" && p.Effort != "default" {
		c.Reasoning = p.Effort
	}
	if s.WebSearch == "cached" {
		c.Settings = &protocol.Settings{WebSearch: protocol.Set("cached")}
	}
	if c.Sandbox != protocol.SandboxFull {
		c.Network = protocol.Set(s.Network)
		c.ExcludeSlashTmp = protocol.Set(s.NoTmp)
		c.ExcludeTmpdirEnvVar = protocol.Set(s.NoTmpdir)
		if !s.Network {
			c.UnixSockets = s.UnixSockets
		}
	}
	if gates := s.Row.Gates(allTools(c.Tools, c.ClientTools), s); len(gates) > 0 {
		c.Approve, c.Approver = gates[0].Tools, gates[0].Tag
		if gates[0].ExpireMS != nil {
			c.ApproveExpireMS = protocol.Set(*gates[0].ExpireMS)
		}
	}
	return c
}

func allTools(tools []string, served []protocol.ClientTool) []string {
	all := slices.Clone(tools)
	for _, t := range served {
		all = append(all, t.Name)
	}
	return all
}

// Make makes the folder of the worktrees and the bot. Rules that the daemon cannot
// parse become the mark that refuses every command. When it fails there is no bot.
func (p *Plan) Make(ctx context.Context, c *client.Client) (*protocol.Bot, error) {
	create := p.Create()
	if slices.Contains(create.WritableRoots, p.WorktreesDir()) {
		if err := p.MakeWorktreesDir(); err != nil {
			return nil, err
		}
	}
	bot, err := c.Create(ctx, create)
	if refusedRules(err) {
		create.Rules = client.UnreadableRules(err)
		bot, err = c.Create(ctx, create)
	}
	return bot, err
}

// MakeWorktreesDir makes the folder of the project's worktrees.
func (p *Plan) MakeWorktreesDir() error {
	return makeDirs(worktree.RootOf(p.Store), p.WorktreesDir())
}

// CheckOnly refuses a plan that names a tool which a lead of these settings does not get.
func (p *Plan) CheckOnly() error {
	has := allTools(p.tools(), p.clientTools())
	for _, name := range p.Only {
		if !slices.Contains(has, name) {
			all := *p
			all.Only = nil
			return protocol.Fail(protocol.UnknownTool, name+" is none of the tools here: "+strings.Join(allTools(all.tools(), all.clientTools()), ", "))
		}
	}
	return nil
}

// SendRules gives a session the command rules that hold now. Those that the daemon
// cannot parse become the mark that refuses every command.
func SendRules(ctx context.Context, c *client.Client, bot *protocol.Bot, rules *protocol.Rules) error {
	change := &protocol.Configure{Bot: bot.Name, BotID: bot.ID, Rules: protocol.Set(*rules)}
	_, err := c.Configure(ctx, change)
	if refusedRules(err) {
		change.Rules = protocol.Set(*client.UnreadableRules(err))
		_, err = c.Configure(ctx, change)
	}
	return err
}

func makeDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := place.MakePrivateDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func refusedRules(err error) bool {
	return errors.Is(err, protocol.InvalidRules) || errors.Is(err, protocol.RulesLimit)
}

// sessionRules is the name of the file of rules that hold for one session.
const sessionRules = "session.rules"

// ReadRules are the person's command rules, with those of one session where its file
// is there (sonny.md 4). What cannot be read is the mark that refuses every command.
func ReadRules(dir, session string) *protocol.Rules {
	rules, err := client.ReadRules(dir)
	if err != nil {
		return client.UnreadableRules(err)
	}
	text, err := os.ReadFile(session)
	switch {
	case session == "" || errors.Is(err, os.ErrNotExist):
		return rules
	case err != nil:
		return client.UnreadableRules(err)
	}
	rules.Files = append(rules.Files, protocol.RuleFile{Name: sessionRules, Text: string(text)})
	return rules
}
