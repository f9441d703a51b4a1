package instructions

import (
	"strings"

	"agent/protocol"
)

// A Role is a file NAME.md in .agents/agents: a body that ends a bot's
// instructions, and defaults for what its maker does not say.
type Role struct {
	Name, Path string
	Model      string   // PROVIDER/MODEL; "" for none
	Effort     string   // "" for none
	Tools      []string // nil for none
	Body       string
}

// role adds the body of the role that the bot is started in. The workspace's role
// of a name is looked for first, and the person's never stands in for one that
// cannot be read.
func (c *composer) role() error {
	if c.Role == "" {
		return nil
	}
	for _, top := range c.tops() {
		path := inAgents(top, "agents", c.Role+".md")
		heading := "\n# Role: " + c.Role + "\n\n"
		f, err := readText(path, c.room-len(heading))
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		if c.inRole, err = parseRole(c.Role, path, f.text); err != nil {
			return err
		}
		if strings.TrimSpace(c.inRole.Body) == "" {
			return nil
		}
		return c.add(path, f.info.Size(), heading+body(c.inRole.Body))
	}
	return protocol.Fail(protocol.ProfileNotFound, "there is no role "+c.Role+": no "+escaped(inAgents(c.Workspace, "agents", c.Role+".md"))+
		", and none in "+escaped(inAgents(c.Home, "agents")))
}

func parseRole(name, path, text string) (*Role, error) {
	m, rest, closed := ParseFrontMatter(text)
	if !closed {
		return nil, protocol.Fail(protocol.InstructionsUnreadable, escaped(path)+": its front matter has no end; close it with a line ---")
	}
	return &Role{
		Name: name, Path: path, Model: m.Text("model"), Effort: m.Text("effort"), Tools: m.List("tools"), Body: rest,
	}, nil
}

// validRole reports whether a name may be a role's.
func validRole(name string) bool {
	for i := range len(name) {
		if c := name[i]; !letterOrDigit(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return name != "" && name[0] != '.'
}
