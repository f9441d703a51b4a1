package cli

import (
	"slices"

	"agent/client/instructions"
	"agent/protocol"
)

// instruct gives a new bot the instructions that are put together for its folder,
// where the line asks for them, and what its role says where the line is silent
// (section 17). source is the checkout that its worktree was made of, "" without
// one.
func (r *run) instruct(c *protocol.Create, source string) error {
	n := &r.newBot
	if !n.agents && n.profile == "" {
		return nil
	}
	composed, err := instructions.Compose(instructions.Options{Workspace: c.Workspace, Source: source, Role: n.profile})
	if err != nil {
		return err
	}
	c.Instructions = composed.Text
	if composed.Role != nil {
		return r.applyRole(c, composed.Role)
	}
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
