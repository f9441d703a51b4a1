package cli

import (
	"fmt"
	"slices"

	"agent/client"
	"agent/client/instructions"
	"agent/client/termsafe"
	"agent/client/worktree"
	"agent/internal/place"
	"agent/protocol"
)

// instruct gives a new bot the instructions that are put together for its folder,
// where the line asks for them, and what its role says where the line is silent
// (section 17). tree is the worktree that was made for it, nil without one. What was
// not taken is told on standard error.
func (r *run) instruct(c *protocol.Create, tree *worktree.Tree) error {
	n := &r.newBot
	if !n.agents && n.profile == "" {
		return nil
	}
	o := instructions.Options{Workspace: c.Workspace, Role: n.profile}
	if err := r.placeTree(&o, tree); err != nil {
		return err
	}
	composed, err := instructions.Compose(o)
	if err != nil {
		return err
	}
	for _, l := range composed.Left {
		fmt.Fprintf(r.app.stderr, "agent: %s was not taken: %s\n", termsafe.OneLine(l.Path), termsafe.OneLine(l.Why))
	}
	c.Instructions = composed.Text
	if composed.Role != nil {
		return r.applyRole(c, composed.Role)
	}
	return nil
}

// placeTree says of what worktree the folder is: of the one that was made for the bot,
// or of the one of another bot that it lies in.
func (r *run) placeTree(o *instructions.Options, tree *worktree.Tree) error {
	if tree != nil {
		o.Source, o.Top = tree.Source(), tree.Path
		return nil
	}
	target, err := client.Resolve(r.common.store, r.common.socket)
	if err != nil {
		return err
	}
	o.Top = worktree.TopAt(worktree.RootOf(target.Store), place.Real(o.Workspace))
	return nil
}

// applyRole takes a role's model and tools. --model and --tools beat them, and
// they beat the environment and what is built in.
func (r *run) applyRole(c *protocol.Create, role *instructions.Role) error {
	if r.modelSource != "" && role.Model != "" {
		r.model, r.modelSource = role.Model, role.Path+": model"
		if err := checkModel(r.modelSource, r.model); err != nil {
			return err
		}
	}
	if c.Model = r.model; c.Model == "" {
		return errNoModel("; the role " + role.Name + " names none")
	}
	if c.Tools == nil && role.Tools != nil {
		c.Tools = slices.DeleteFunc(slices.Clone(role.Tools), r.newBot.off)
	}
	return nil
}

// off reports whether config.toml takes a tool out of those that the line does not
// name.
func (n *newBotFlags) off(tool string) bool {
	return n.search == searchDisabled && (tool == "web_fetch" || tool == "web_search")
}
