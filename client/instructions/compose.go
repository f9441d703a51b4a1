package instructions

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agent/internal/place"
	"agent/protocol"
)

// MaxBytes bounds a composed text, in bytes.
const MaxBytes = 60 << 10

// Options say for what Compose composes.
type Options struct {
	// Workspace is the folder that the bot works in; absolute.
	Workspace string

	// Source is the top of the checkout that a worktree was made of, for a bot
	// that works in one: the AGENTS.md files of the folders above it count too.
	// Who made the worktree knows it; what the worktree's own .git file says is
	// not asked, since an agent may have written that. Absolute; "" for any other
	// folder.
	Source string

	// Top is the top of the worktree that Workspace lies in, where bots write the
	// folders around it: no folder above it counts. Absolute; "" for any other folder.
	Top string

	// OwnOnly leaves out what lies in the workspace and in the folders above it, and
	// reads the person's own files alone.
	OwnOnly bool

	// Home holds .agents; absolute; "": the person's home folder.
	Home string

	// Role is the role that the bot is started in; "" for none.
	Role string

	// Project is the project whose memory is read; "": the one that ProjectName
	// gives.
	Project string

	// BuiltIn are the texts of roles, as their files would hold them, that need no
	// file: one of the name, the workspace's or the person's, replaces it.
	BuiltIn map[string]string

	// Fallbacks are names of files of which the first that is there is read where a folder
	// has no AGENTS.md. What is no plain file name counts for none.
	Fallbacks []string

	// HiddenSkills are names that the index of skills leaves out.
	HiddenSkills []string

	// Standing is a last paragraph, below the role; "" for none.
	Standing string

	// Now decides which threads of the commons are recent; zero: the present.
	Now time.Time
}

// Composed is a composed text, and what went into it.
type Composed struct {
	Text    string
	Role    *Role // nil where none was asked for
	Parts   Parts
	Sources []Source // in the order of the text
	Left    []Left   // files that were not taken, or not whole
}

// Left is a file that was not taken: an AGENTS.md that others may have written, or an index
// of memory with lines that are no fact's, of which the others were.
type Left struct{ Path, Why string }

// A Source is one thing that went into a text.
type Source struct {
	Layer string // preamble, agents, skills, roles, memory, commons, role, standing
	Path  string // of its file, or a thread's folder; "" for what is built in
	Bytes int    // of the text, with the heading above it
}

// Parts count what a text holds beside the preamble.
type Parts struct{ AgentsFiles, Skills, Roles, Facts, Threads int }

// Compose puts together the instructions that a bot of a workspace is given:
// preamble, AGENTS.md files, the skills index, the roles index, memory's indexes,
// open threads of the commons, the role's body, the standing paragraph (section
// 17). The same files give the same bytes, so the text rides a provider's cache: lists
// are sorted and hold no time. An absent file, and an empty one, is skipped.
//
// The way up from the workspace, and from Source, ends below the first folder that a
// user besides the caller and root may write, or every sandboxed bot, as /tmp: what
// stands there is nobody's standing order. An AGENTS.md of another user is not taken
// either. Composed.Left says what was passed over.
//
// It reads regular files only, never more of one than there is room for, and
// never waits for one. Errors: instructions_limit, naming the file and its size,
// for a text past MaxBytes or a folder of more than 4,096 entries;
// instructions_unreadable, naming what is there and cannot be read, is not UTF-8,
// or is a link to nothing; profile_not_found; invalid_name for a role's or a
// project's name; workspace_must_exist_and_be_absolute, also for Source, Top and Home.
func Compose(o Options) (*Composed, error) {
	c, err := newComposer(o)
	if err != nil {
		return nil, err
	}
	for _, layer := range []struct {
		name string
		put  func() error
	}{
		{"agents", c.agentsFiles},
		{"skills", c.skills},
		{"roles", c.roles},
		{"memory", c.memory},
		{"commons", c.commons},
		{"role", c.role},
		{"standing", c.standing},
	} {
		c.layer = layer.name
		if err := layer.put(); err != nil {
			return nil, err
		}
	}
	return &Composed{Text: c.text.String(), Role: c.inRole, Parts: c.parts, Sources: c.sources, Left: c.left}, nil
}

// standing adds the paragraph that ends the text.
func (c *composer) standing() error {
	text := strings.TrimSpace(c.Standing)
	if text == "" {
		return nil
	}
	return c.add("", int64(len(text)), "\n"+body(text))
}

// composer is one text under way.
type composer struct {
	Options
	text   strings.Builder
	room   int // bytes that may still come
	parts  Parts
	inRole *Role

	layer   string
	sources []Source
	left    []Left
}

func newComposer(o Options) (*composer, error) {
	if o.Home == "" {
		home, err := place.Home()
		if err != nil {
			return nil, err
		}
		o.Home = home
	}
	real, err := filepath.EvalSymlinks(o.Workspace)
	if err == nil && !isFolder(real) {
		err = errors.New("it is no folder")
	}
	if err != nil || !filepath.IsAbs(o.Workspace) {
		return nil, protocol.Fail(protocol.WorkspaceMustExistAndBeAbsolute, o.Workspace+" is no folder to work in")
	}
	o.Workspace = real
	if o.Role != "" && !ValidRole(o.Role) {
		return nil, protocol.Fail(protocol.InvalidName, "the role "+o.Role+": its name is letters, digits, -, _ and ., and does not begin with a dot")
	}
	if o.Project != "" && !validProject(o.Project) {
		return nil, protocol.Fail(protocol.InvalidName, "the project "+o.Project+": its name is "+projectRule)
	}
	for _, dir := range []string{o.Source, o.Top, o.Home} {
		if dir != "" && !filepath.IsAbs(dir) {
			return nil, protocol.Fail(protocol.WorkspaceMustExistAndBeAbsolute, dir+" is no absolute path")
		}
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	c := &composer{Options: o, room: MaxBytes, layer: "preamble"}
	return c, c.add("", int64(len(Preamble())), Preamble())
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// add puts what came from the file at path, "" for what is built in, whose size is
// said where there is no room for it.
func (c *composer) add(path string, size int64, text string) error {
	if len(text) > c.room {
		return tooLarge(cmp.Or(path, "the built-in part "+c.layer), size)
	}
	c.room -= len(text)
	c.text.WriteString(text)
	c.sources = append(c.sources, Source{c.layer, path, len(text)})
	return nil
}

func tooLarge(path string, size int64) error {
	return protocol.Fail(protocol.InstructionsLimit, fmt.Sprintf(
		"%s has %d bytes, and with it the instructions are over %d; shorten it or another of their files", escaped(path), size, MaxBytes))
}

// agentsTop is the folder beside the person's home whose .agents is read.
func (c *composer) agentsTop() string {
	if c.OwnOnly {
		return c.Home
	}
	return c.Workspace
}

// body is a file's text as a part of the whole: its lines, none of which passes
// for one of ours, and one newline at the end.
func body(text string) string {
	lines := strings.Split(strings.Trim(text, "\r\n"), "\n")
	for i, line := range lines {
		if poses(line) {
			lines[i] = " " + line
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// poses reports whether a line reads as the end line or as the heading of an
// AGENTS.md section.
func poses(line string) bool {
	return strings.TrimRight(line, " \t\r") == EndLine || strings.HasPrefix(line, headingOf(""))
}
