package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"agent/client"
	"agent/client/envfile"
	"agent/client/instructions"
	"agent/internal/rules"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/memory"
	"agent/internal/sonny/skill"
	"agent/protocol"
)

// maxSessionRules bounds the sessions' rule files that are looked at.
const maxSessionRules = 256

// rules parses the person's command rules, and those of each session.
func (d *Doctor) rules(context.Context) finding {
	files, err := allow.ReadFolder(filepath.Join(d.agentDir(), "rules"))
	if err != nil {
		return faultOf(Fail, err, "until it can be read every command of a new bot is refused")
	}
	set, err := parseRules(files)
	if err != nil {
		return faultOf(Fail, err, "correct the file; until then every command of a new bot is refused")
	}
	sessions, err := sessionRules(filepath.Join(d.agentDir(), "sonny", "rules"))
	if err != nil {
		return faultOf(Fail, err, "remove the file: it is of one session alone")
	}
	f := okf("%s in %s", counted(len(set.Rules()), "rule"), counted(len(files.Files), "file"))
	if sessions > 0 {
		f.detail = counted(sessions, "session") + " with rules of their own"
	}
	return f
}

func parseRules(r *protocol.Rules) (*rules.Set, error) {
	var files []rules.File
	for _, f := range r.Files {
		files = append(files, rules.File{Name: f.Name, Text: f.Text})
	}
	return rules.Parse(files)
}

// sessionRules parses the rules that hold for one session each.
func sessionRules(dir string) (int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return 0, nil // no session has any
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxSessionRules)
	for _, name := range names {
		files, err := client.ReadRules(filepath.Join(dir, name))
		if err == nil {
			_, err = parseRules(files)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(names), nil
}

// mcp looks at the servers' settings. None is started.
func (d *Doctor) mcp(context.Context) finding {
	if d.o.Config == nil {
		return skipf("config.toml was not read")
	}
	var names, off, lack []string
	for _, name := range slices.Sorted(maps.Keys(d.o.Config.MCPServers)) {
		s := d.o.Config.MCPServers[name]
		switch {
		case s.Off != nil:
			off = append(off, name+": "+s.Off.Detail)
			continue
		case !s.Enabled:
			continue
		}
		names = append(names, name)
		needs := slices.Concat(s.EnvVars, slices.Sorted(maps.Values(s.EnvHTTPHeaders)))
		if s.BearerTokenEnvVar != "" {
			needs = append(needs, s.BearerTokenEnvVar)
		}
		for _, variable := range needs {
			if envfile.Get(d.environ, variable) == "" {
				lack = append(lack, name+" needs "+variable)
			}
		}
	}
	switch {
	case len(off) > 0:
		return failed(listed(off), "sonny config edit").with(listed(names))
	case len(lack) > 0:
		return warn(listed(lack)+", which has no value", "sonny env set NAME").with(listed(names))
	case d.o.MCP && len(names) > 0:
		return skipf("this build of sonny starts no MCP servers; %s would be", counted(len(names), "server")).with(listed(names))
	}
	return okf("%s set up, none was started", counted(len(names), "server")).with(listed(names))
}

// broken is one file of a kind, and what keeps it from being read.
type broken struct{ name, why string }

// files is a finding of files of which some cannot be read.
func files(n int, noun string, bad []broken, remedy string) finding {
	if len(bad) == 0 {
		return okf("%s", counted(n, noun))
	}
	var why []string
	for _, b := range bad {
		why = append(why, b.name+": "+b.why)
	}
	return failed(fmt.Sprintf("%s of %d cannot be read: %s", counted(len(bad), noun), n, why[0]), remedy).with(listed(why))
}

func (d *Doctor) skills(context.Context) finding {
	var disabled []string
	if d.o.Config != nil {
		disabled = d.o.Config.Skills.Disabled
	}
	rows, err := skill.Open(d.o.Home).List(d.o.Folder, disabled)
	if err != nil {
		return faultOf(Fail, err, "")
	}
	var bad []broken
	var odd []string
	n := 0
	for _, r := range rows {
		if r.Path != "" {
			n++
		}
		switch {
		case r.Error != "":
			bad = append(bad, broken{r.Name, r.Error})
		case !skill.PlainName(r.Name):
			odd = append(odd, r.Name)
		}
	}
	left, err := instructions.SkillsLeftOut(d.o.Folder, d.o.Home)
	if err != nil {
		return faultOf(Fail, err, "")
	}
	if len(bad) == 0 && len(left) > 0 {
		return warn("no bot is shown "+listed(left)+": a skill's name is 1 to 64 of a-z 0-9 -", "rename the folder").with(listed(append(left, odd...)))
	}
	if len(bad) == 0 && len(odd) > 0 {
		return warn("a skill's name is 1 to 64 of a-z 0-9 -: "+listed(odd), "rename the folder")
	}
	return files(n, "skill", bad, "correct the SKILL.md, or remove its folder")
}

func (d *Doctor) roles(context.Context) finding {
	rows, err := skill.Roles(d.o.Folder, d.o.Home)
	if err != nil {
		return faultOf(Fail, err, "")
	}
	var bad []broken
	for _, r := range rows {
		if r.Error != "" {
			bad = append(bad, broken{r.Name, r.Error})
		}
	}
	return files(len(rows), "role", bad, "sonny roles edit NAME")
}

func (d *Doctor) commands(context.Context) finding {
	list, err := skill.Commands(d.o.Folder, d.o.Home)
	if err != nil {
		return faultOf(Fail, err, "")
	}
	var bad []broken
	for _, c := range list {
		if c.Err != nil {
			bad = append(bad, broken{c.Name, reason(c.Err)})
		}
	}
	return files(len(list), "command", bad, "correct the file, or remove it")
}

// memory checks the folders of facts.
func (d *Doctor) memory(ctx context.Context) finding {
	const remedy = "sonny memory check SCOPE says more"
	m := memory.Open(d.o.Home, d.o.Now)
	scopes, err := m.Scopes()
	if err != nil {
		return faultOf(Fail, err, "")
	}
	facts := 0
	var wrong []string
	for _, s := range scopes {
		if ctx.Err() != nil {
			return skipf("it was interrupted")
		}
		c, err := m.Check(s)
		if err != nil {
			wrong = append(wrong, s.String()+": "+reason(err))
			continue
		}
		facts += c.Facts
		for _, p := range c.Problems {
			wrong = append(wrong, p.String())
		}
	}
	if len(wrong) > 0 {
		return failed(wrong[0], remedy).with(listed(wrong))
	}
	return okf("%s in %s", counted(facts, "fact"), counted(len(scopes), "folder"))
}

// isMissing reports whether an error is of a file that is not there.
func isMissing(err error) bool { return errors.Is(err, os.ErrNotExist) }
