package approver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/client"
	"agent/client/envfile"
	agentsmd "agent/client/instructions"
	"agent/client/items"
	"agent/internal/secret"
	"agent/protocol"
)

// What one request to the judge may hold (approvals.md 11).
const (
	maxInstructions = 64 << 10           // all AGENTS.md texts, in bytes
	maxAgentsFile   = 32 << 10           // one of them
	maxNote         = 8 << 10            // the person's note
	maxDocument     = protocol.MaxPrompt // it is sent as one prompt
	maxAncestors    = 64                 // bots between a bot and the one that no bot made
)

// The reasons for which a single call is denied without the judge.
const (
	tooLongToShow  = "not reviewed: the call is too long to show"
	tooLargeToShow = "not reviewed: it runs a file too large to show"
)

// gatherer collects what a judge is shown. It asks the daemon, and reads from
// disk only the files that planned calls run or name. It is safe for concurrent
// use; what one gathering holds is bounded, however long the bot's history is.
type gatherer struct {
	client *client.Client
	note   string
	env    []string // the approver's environment
	dir    string   // ~/.agent
	known  *secret.Values
	judge  *secret.Judge
}

// newGatherer returns a gatherer that asks c. note is the person's. What is masked
// are the secrets of this process's environment and of ~/.agent.
func newGatherer(c *client.Client, note string) *gatherer {
	known := &secret.Values{}
	g := &gatherer{client: c, note: note, env: os.Environ(), known: known, judge: secret.NewJudge(known)}
	if path, err := envfile.DefaultPath(); err == nil {
		g.dir = filepath.Dir(path)
	}
	return g
}

// document is what the judge reads, in this order.
type document struct {
	Instructions []standing    `json:"standing_instructions"`
	Note         string        `json:"note"`
	Sandbox      sandbox       `json:"sandbox"`
	Transcript   []shownEntry  `json:"transcript"`
	LeftOut      string        `json:"transcript_left_out,omitempty"`
	Planned      []plannedCall `json:"planned_calls"`
	Unjudged     []unjudged    `json:"calls_run_without_verdict,omitempty"`
	Done         []doneCall    `json:"done_calls"`
	DoneLeftOut  string        `json:"done_calls_left_out,omitempty"`
}

// standing is an AGENTS.md text.
type standing struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

type sandbox struct {
	Mode      string   `json:"mode"`
	Writable  []string `json:"writable_folders"`
	Network   string   `json:"network"` // on, off
	Workspace string   `json:"workspace"`
}

// collecting is one round's evidence while it is collected.
type collecting struct {
	*gatherer
	ctx     context.Context
	r       *round
	bot     *protocol.Bot
	prompts *protocol.Prompts
	cwd     string   // the turn's folder
	roots   []string // the folders that the bot writes, and their real paths

	read      map[int64][]items.Part // items that were read by their nodes
	readBytes int
}

// gather collects the evidence of a round. It returns errTooMuch, wrapped, for a
// round that cannot be shown as it must be; any other error is a failure to
// collect. Neither is ever a reason to allow.
func (g *gatherer) gather(ctx context.Context, r *round) (*evidence, error) {
	if err := g.learn(ctx); err != nil {
		return nil, err
	}
	a := &collecting{gatherer: g, ctx: ctx, r: r}
	if err := a.records(); err != nil {
		return nil, err
	}
	var d document
	var err error
	if d.Instructions, err = a.instructions(); err != nil {
		return nil, err
	}
	if len(g.note) > maxNote {
		return nil, fmt.Errorf("%w: the note has %d bytes", errTooMuch, len(g.note))
	}
	d.Note, d.Sandbox = g.text(g.note), a.sandbox()
	e := &evidence{refused: map[int]string{}}
	if err := a.calls(&d, e); err != nil {
		return nil, err
	}
	room := toolBudget
	if err := a.done(&d, &room); err != nil {
		return nil, err
	}
	if err := a.transcript(&d, room); err != nil {
		return nil, err
	}
	text, err := encode(d)
	if err != nil {
		return nil, err
	}
	if len(text) > maxDocument {
		return nil, fmt.Errorf("%w: the evidence has %d bytes", errTooMuch, len(text))
	}
	e.document = string(text)
	return e, nil
}

// records asks for the records that every part needs.
func (a *collecting) records() (err error) {
	if a.bot, err = a.client.Inspect(a.ctx, a.r.bot); err != nil {
		return err
	}
	if a.r.botID != 0 && a.bot.ID != a.r.botID {
		return fmt.Errorf("%s is another bot now", a.r.bot)
	}
	if a.prompts, err = a.client.Prompts(a.ctx, a.r.bot, a.r.turn, protocol.MaxPromptsBytes); err != nil {
		return err
	}
	if w := a.prompts.Workspace; w != nil {
		a.cwd = *w
	} else if a.bot.Workspace != nil {
		a.cwd = *a.bot.Workspace
	}
	a.roots = a.writable()
	return nil
}

// instructions are the AGENTS.md texts that the client of the bot, or of the
// nearest of its makers that no bot made, put into its instructions. A bot may
// give the bots that it makes any text.
func (a *collecting) instructions() ([]standing, error) {
	list := []standing{}
	bot := a.bot
	for n := 0; bot.CreatedByID != nil; n++ {
		if n == maxAncestors || bot.CreatedBy == nil {
			return list, nil
		}
		maker, err := a.client.Inspect(a.ctx, *bot.CreatedBy)
		switch {
		case isGone(err):
			return list, nil
		case err != nil:
			return nil, err
		case maker.ID != *bot.CreatedByID:
			return list, nil
		}
		bot = maker
	}
	if bot.BotMade { // a fork, by a client, of one that a bot made
		return list, nil
	}
	size := 0
	for _, s := range agentsmd.AgentsSections(bot.Instructions) {
		if size += len(s.Text); size > maxInstructions || len(s.Text) > maxAgentsFile {
			return nil, fmt.Errorf("%w: the AGENTS.md texts", errTooMuch)
		}
		list = append(list, standing{Path: a.text(s.Path), Text: a.text(s.Text)})
	}
	return list, nil
}

// The bot's sandbox modes.
const (
	readOnly       = "read-only"
	workspaceWrite = "workspace-write"
)

func (a *collecting) sandbox() sandbox {
	s := sandbox{Mode: visible(a.bot.Sandbox), Writable: []string{}, Network: "off", Workspace: a.text(a.cwd)}
	if a.bot.Network {
		s.Network = "on"
	}
	switch a.bot.Sandbox {
	case workspaceWrite:
		for _, root := range a.roots {
			s.Writable = append(s.Writable, a.text(root))
		}
	case readOnly:
	default: // no sandbox
		s.Writable, s.Network = []string{"/"}, "on"
	}
	return s
}

// writable are the folders from which a script may be the bot's own work: those
// that its sandbox lets it write. Without a sandbox it may write anywhere, and
// what is its own is taken to lie in its workspace and the temporary folders.
func (a *collecting) writable() []string {
	if a.bot.Sandbox == readOnly {
		return nil
	}
	var list []string
	one := func(path string) {
		if path != "" && path != "/" && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	add := func(path string) {
		one(path)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			one(real)
		}
	}
	if a.bot.Workspace != nil {
		add(*a.bot.Workspace)
	}
	if a.bot.Sandbox != workspaceWrite {
		add(a.cwd)
	}
	for _, root := range a.bot.WritableRoots {
		add(root)
	}
	if !a.bot.ExcludeSlashTmp {
		add("/tmp")
	}
	if tmp := a.environ("TMPDIR"); strings.HasPrefix(tmp, "/") && !a.bot.ExcludeTmpdirEnvVar {
		add(tmp)
	}
	return list
}
