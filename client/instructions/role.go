package instructions

import (
	"cmp"
	"strings"

	"agent/protocol"
)

// A Role is a file NAME.md in .agents/agents: a body that ends a bot's
// instructions, and defaults for what its maker does not say.
type Role struct {
	Name, Path string   // Path is "" for one that is built in
	Model      string   // PROVIDER/MODEL; "" for none
	Effort     string   // "" for none
	Tools      []string // nil for none
	Body       string
}

// role adds the body of the role that the bot is started in.
func (c *composer) role() error {
	if c.Role == "" {
		return nil
	}
	heading := "\n# Role: " + c.Role + "\n\n"
	role, size, err := c.findRole(c.room - len(heading))
	if err != nil {
		return err
	}
	c.inRole = role
	if strings.TrimSpace(role.Body) == "" {
		return nil
	}
	return c.add(role.Path, size, heading+body(role.Body))
}

// findRole reads the role. The workspace's of a name is looked for first, then the
// person's, then the one that is built in; none stands in for a nearer one that
// cannot be read.
func (c *composer) findRole(room int) (*Role, int64, error) {
	for _, top := range tops(c.agentsTop(), c.Home) {
		path := inAgents(top, "agents", c.Role+".md")
		f, err := readText(path, room)
		if err != nil {
			return nil, 0, err
		}
		if f != nil {
			role, err := parseRole(c.Role, path, f.text)
			return role, f.info.Size(), err
		}
	}
	if text, ok := c.BuiltIn[c.Role]; ok {
		role, err := parseRole(c.Role, "", text)
		return role, int64(len(text)), err
	}
	return nil, 0, protocol.Fail(protocol.ProfileNotFound, "there is no role "+c.Role+": no "+escaped(inAgents(c.agentsTop(), "agents", c.Role+".md"))+
		", and none in "+escaped(inAgents(c.Home, "agents")))
}

func parseRole(name, path, text string) (*Role, error) {
	m, rest, closed := ParseFrontMatter(text)
	if !closed {
		return nil, protocol.Fail(protocol.InstructionsUnreadable, escaped(cmp.Or(path, "the built-in role "+name))+": its front matter has no end; close it with a line ---")
	}
	return &Role{
		Name: name, Path: path, Model: m.Text("model"), Effort: m.Text("effort"), Tools: m.List("tools"), Body: rest,
	}, nil
}

// ValidRole reports whether a name may be a role's: letters, digits, -, _ and .,
// not beginning with a dot.
func ValidRole(name string) bool {
	for i := range len(name) {
		if c := name[i]; !letterOrDigit(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return name != "" && name[0] != '.'
}
