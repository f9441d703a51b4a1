package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"agent/internal/sandbox"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// Sandbox is what the engine confines bots with; without one it makes no bot
// that is to be confined.
type Sandbox struct {
	World        *sandbox.World
	Launcher     *sandbox.Launcher
	Placeholders *sandbox.Placeholders
	// BotSocket gives the path of a bot's own socket, which is there when it
	// returns; "" where there are none. Nil: there are none.
	BotSocket func(bot int64, name string) string
	// Deleted is told that a bot's deletion has begun, before the answer to it.
	// Nil: nobody is.
	Deleted func(bot int64)
}

// confinementAsked is what a request says of how a bot is held.
type confinementAsked struct {
	mode             protocol.Opt[string]
	roots            protocol.Opt[[]string]
	network          protocol.Opt[bool]
	sockets          protocol.Opt[[]string]
	slashTmp, tmpdir protocol.Opt[bool]
	rules            protocol.Opt[protocol.Rules]
}

func optional[T any](v T, given bool) protocol.Opt[T] {
	if !given {
		return protocol.Opt[T]{}
	}
	return protocol.Set(v)
}

func askedByCreate(r *protocol.Create) confinementAsked {
	a := confinementAsked{
		mode: optional(r.Sandbox, r.Sandbox != ""), roots: optional(r.WritableRoots, r.WritableRoots != nil), network: r.Network,
		sockets: optional(r.UnixSockets, r.UnixSockets != nil), slashTmp: r.ExcludeSlashTmp, tmpdir: r.ExcludeTmpdirEnvVar,
	}
	if r.Rules != nil {
		a.rules = protocol.Set(*r.Rules)
	}
	return a
}

func askedByFork(r *protocol.Fork) confinementAsked {
	return confinementAsked{
		mode: optional(r.Sandbox, r.Sandbox != ""), roots: optional(r.WritableRoots, r.WritableRoots != nil), network: r.Network,
		sockets: optional(r.UnixSockets, r.UnixSockets != nil), slashTmp: r.ExcludeSlashTmp, tmpdir: r.ExcludeTmpdirEnvVar,
	}
}

func askedByConfigure(r *protocol.Configure) confinementAsked {
	return confinementAsked{
		mode: r.Sandbox, roots: r.WritableRoots, network: r.Network, sockets: r.UnixSockets,
		slashTmp: r.ExcludeSlashTmp, tmpdir: r.ExcludeTmpdirEnvVar, rules: r.Rules,
	}
}

// place reports whether anything but the rules is asked.
func (a *confinementAsked) place() bool {
	return !(a.mode.IsZero() && a.roots.IsZero() && a.network.IsZero() && a.sockets.IsZero() && a.slashTmp.IsZero() && a.tmpdir.IsZero())
}

// hold is how a bot is held: its setting, narrowed by all above it, and the rules
// it goes by.
type hold struct {
	setting sandbox.Setting
	rules   string // a reference
}

// limits is what a deleted sandboxed creator leaves binding, in the rows of the
// bots it made. Its rules have become theirs.
type limits struct {
	Setting  sandbox.Setting `json:"setting"`
	Creators []int64         `json:"creators,omitempty"` // who was above it, nearest first
}

// maxAncestors bounds a chain of creators, which an intact store never comes near.
const maxAncestors = 100_000

// holdOf is how a bot is held now. A creator that was narrowed narrows what it
// made; the rules of a sandboxed creator are those of its bots (sandbox.md 9).
func (e *Engine) holdOf(c *store.Conn, bot int64) (hold, error) {
	var chain []store.Confinement
	for id := bot; id != 0 && len(chain) < maxAncestors; {
		v, ok, err := store.ConfinementOf(c, id)
		if err != nil {
			return hold{}, err
		}
		if !ok {
			break
		}
		chain = append(chain, v)
		if len(v.CreatorLimits) > 0 {
			break // whoever was above is gone, and this is what stayed of it
		}
		id = v.CreatedByID
	}
	var h hold
	for _, v := range slices.Backward(chain) {
		var own sandbox.Setting
		if len(v.Sandbox) > 0 {
			if err := json.Unmarshal(v.Sandbox, &own); err != nil {
				return hold{}, protocol.Fail(protocol.StorageError, "a bot's sandbox in the store cannot be read")
			}
		}
		if len(v.CreatorLimits) > 0 {
			var l limits
			if err := json.Unmarshal(v.CreatorLimits, &l); err != nil {
				return hold{}, protocol.Fail(protocol.StorageError, "what binds a bot in the store cannot be read")
			}
			h = hold{l.Setting, v.Rules}
		}
		above := h
		h = hold{setting: own, rules: v.Rules}
		if above.setting.Confines() {
			h = hold{setting: e.world().Bind(own, above.setting), rules: above.rules}
		}
	}
	return h, nil
}

// world is what plans have in common; an empty one where there is no sandbox.
func (e *Engine) world() *sandbox.World {
	if e.cfg.Sandbox == nil {
		return &sandbox.World{}
	}
	return e.cfg.Sandbox.World
}

// confining settles how a new or changed bot is held. It is made outside the
// store's worker, since it looks at the file system, from what the store said
// then; the job that writes the bot asks current whether that still holds.
type confining struct {
	setting sandbox.Setting
	ref     string
	files   []byte // of new rules, for the store
	from    []relied
}

// relied is a bot whose hold something was settled by.
type relied struct {
	bot  int64
	hold []byte
}

// current reports whether what was settled still is.
func (f *confining) current(e *Engine, c *store.Conn) (bool, error) {
	for _, r := range f.from {
		h, err := e.holdOf(c, r.bot)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(encodeHold(h), r.hold) {
			return false, nil
		}
	}
	return true, nil
}

func encodeHold(h hold) []byte {
	return append(encodeSetting(&h.setting), h.rules...)
}

func encodeSetting(s *sandbox.Setting) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("engine: a sandbox setting does not encode: " + err.Error())
	}
	return b
}

// heldBy reads how a bot is held, for something to be settled by it.
func (e *Engine) heldBy(ctx context.Context, f *confining, bot int64) (h hold, err error) {
	if bot == 0 {
		return h, nil
	}
	err = e.read(ctx, "hold", func(c *store.Conn) (err error) {
		h, err = e.holdOf(c, bot)
		return err
	})
	f.from = append(f.from, relied{bot, encodeHold(h)})
	return h, err
}

// confineNew settles how a new bot is held: by what is asked, by the bot it is a
// fork of (0: none), and by its creator (0: none).
func (e *Engine) confineNew(ctx context.Context, a confinementAsked, workspace string, source, creator int64) (*confining, error) {
	f := &confining{}
	above, err := e.heldBy(ctx, f, creator)
	if err != nil {
		return nil, err
	}
	src, err := e.heldBy(ctx, f, source)
	if err != nil {
		return nil, err
	}
	base := src.setting
	if !base.Confines() {
		base = above.setting
	}
	if err := f.settle(e, a, base, workspace); err != nil {
		return nil, err
	}
	for _, h := range []hold{src, above} {
		if wide := e.world().Widens(&f.setting, &h.setting); wide != "" {
			return nil, protocol.Fail(protocol.SandboxWidens, wide)
		}
		if h.setting.Confines() {
			f.setting = e.world().Bind(f.setting, h.setting) // for what stays protected
		}
	}
	if !above.setting.Confines() {
		f.ref = src.rules
	}
	if err := f.takeRules(e, a, above.setting.Confines()); err != nil {
		return nil, err
	}
	return f, e.confinable(ctx, f)
}

// confineAnew settles how a bot is held after configure.
func (e *Engine) confineAnew(ctx context.Context, a confinementAsked, bot *store.Bot, workspace string) (*confining, error) {
	f := &confining{ref: bot.Rules}
	above := hold{}
	var err error
	switch {
	case len(bot.CreatorLimits) > 0:
		var l limits
		if json.Unmarshal(bot.CreatorLimits, &l) != nil {
			return nil, protocol.Fail(protocol.StorageError, "what binds the bot in the store cannot be read")
		}
		above = hold{l.Setting, bot.Rules}
	default:
		if above, err = e.heldBy(ctx, f, bot.CreatedByID); err != nil {
			return nil, err
		}
	}
	var own sandbox.Setting
	if len(bot.Sandbox) > 0 && json.Unmarshal(bot.Sandbox, &own) != nil {
		return nil, protocol.Fail(protocol.StorageError, "the bot's sandbox in the store cannot be read")
	}
	if err := f.settle(e, a, own, workspace); err != nil {
		return nil, err
	}
	if wide := e.world().Widens(&f.setting, &above.setting); wide != "" {
		return nil, protocol.Fail(protocol.SandboxWidens, wide)
	}
	if above.setting.Confines() {
		f.setting = e.world().Bind(f.setting, above.setting)
	}
	if err := f.takeRules(e, a, above.setting.Confines()); err != nil {
		return nil, err
	}
	return f, e.confinable(ctx, f)
}

// settle makes the setting from what is asked, and for the rest from base.
func (f *confining) settle(e *Engine, a confinementAsked, base sandbox.Setting, workspace string) error {
	mode := base.Mode
	if !a.mode.IsZero() {
		mode = a.mode.Or(protocol.SandboxFull)
	}
	switch {
	case mode != "" && !protocol.ValidSandbox(mode):
		return protocol.Fail(protocol.InvalidSandbox, "sandbox is danger-full-access, read-only or workspace-write")
	case mode != protocol.SandboxWorkspace && len(a.roots.Or(nil)) > 0:
		return protocol.Fail(protocol.InvalidWritableRoot, "writable_roots go with the sandbox workspace-write, and this one is "+cmp.Or(mode, protocol.SandboxFull))
	}
	s := sandbox.Setting{Mode: mode}
	if !s.Confines() {
		network, given := a.network.Get()
		if given && !network || len(a.sockets.Or(nil)) > 0 {
			return protocol.Fail(protocol.InvalidSandbox, "network: false and unix_sockets need a sandbox: read-only or workspace-write")
		}
		return nil
	}
	if real, err := sandbox.RealPath(workspace); err == nil {
		workspace = real // in the file system's own spelling
	}
	s.Workspace, s.Above, s.Network = workspace, base.Above, a.network.Or(base.Network && a.network.IsZero())
	s.NoSlashTmp = pick(a.slashTmp, base.NoSlashTmp)
	s.NoTmpdir = pick(a.tmpdir, base.NoTmpdir)
	var err error
	if s.UnixSockets, err = sandbox.CheckSockets(pick(a.sockets, base.UnixSockets)); err != nil {
		return err
	}
	if mode == protocol.SandboxWorkspace {
		roots := pick(a.roots, base.Roots)
		if a.roots.IsZero() && base.Workspace != "" && base.Workspace != workspace && base.Mode == protocol.SandboxWorkspace && f.inherits() {
			roots = append([]string{base.Workspace}, roots...)
		}
		if s.Roots, err = e.world().CheckRoots(workspace, roots); err != nil {
			return err
		}
	}
	s.NoteGit(base.Git)
	f.setting = s
	return nil
}

// inherits reports whether the bot is new, and base is another's.
func (f *confining) inherits() bool { return len(f.from) > 0 }

// pick is what is asked, its zero value where that is null, else def.
func pick[T any](asked protocol.Opt[T], def T) T {
	if asked.IsZero() {
		return def
	}
	var none T
	return asked.Or(none)
}

// takeRules settles the rules. A sandboxed creator's are its bots', by reference.
func (f *confining) takeRules(e *Engine, a confinementAsked, inherited bool) error {
	if a.rules.IsZero() {
		return nil
	}
	if inherited {
		return protocol.Fail(protocol.RulesInherited, "the rules of a bot that a sandboxed bot made are its creator's")
	}
	given, ok := a.rules.Get()
	if !ok {
		f.ref = ""
		return nil
	}
	g, err := e.checkRules(&given)
	if err != nil {
		return err
	}
	f.ref, f.files = g.ref, g.files
	return nil
}

// confinable makes sure that a bot that is to be confined can be.
func (e *Engine) confinable(ctx context.Context, f *confining) error {
	if !f.setting.Confines() {
		return nil
	}
	if e.cfg.Sandbox == nil {
		return protocol.Fail(protocol.SandboxUnavailable, "this daemon has no sandbox")
	}
	return e.cfg.Sandbox.Launcher.Probe(ctx)
}

// encoded is a setting as its column holds it; nil for none.
func (f *confining) encoded() json.RawMessage {
	if !f.setting.Confines() {
		return nil
	}
	return encodeSetting(&f.setting)
}

// keepRules writes the rules that came with a request.
func (f *confining) keepRules(tx *store.Tx) error {
	if f.files == nil {
		return nil
	}
	return tx.PutRules(f.ref, f.files)
}

// recordHold puts into a record how a bot is held.
func recordHold(r *protocol.Bot, b *store.Bot) {
	r.Rules = rulesInfo(b.Rules)
	var s sandbox.Setting
	if len(b.Sandbox) == 0 || json.Unmarshal(b.Sandbox, &s) != nil {
		r.Sandbox, r.Network = protocol.SandboxFull, true
		return
	}
	r.Sandbox, r.Network, r.ExcludeSlashTmp, r.ExcludeTmpdirEnvVar = s.Mode, s.Network, s.NoSlashTmp, s.NoTmpdir
	r.WritableRoots = append(r.WritableRoots, s.Roots...)
	r.UnixSockets = append(r.UnixSockets, s.UnixSockets...)
}

// errSettleAgain says that what a bot's confinement was settled by has changed.
var errSettleAgain = fmt.Errorf("settle the confinement again")

// settleTries bounds how often that is done for one request.
const settleTries = 10

// confinement is what holds the calls of a bot of this hold; nil for one that has
// no sandbox.
func (e *Engine) confinement(h *hold, bot int64, name string) *tool.Confinement {
	if !h.setting.Confines() {
		return nil
	}
	c := &tool.Confinement{Setting: &h.setting, World: e.world()}
	if s := e.cfg.Sandbox; s != nil {
		c.Launcher, c.Placeholders = s.Launcher, s.Placeholders
		if s.BotSocket != nil {
			c.BotSocket = s.BotSocket(bot, name)
		}
	}
	return c
}

// limitChildren writes into the bots that a sandboxed bot made what binds them
// when it is gone, and into what they make from then on.
func (e *Engine) limitChildren(tx *store.Tx, bot int64) error {
	h, err := e.holdOf(tx.Conn(), bot)
	if err != nil || !h.setting.Confines() {
		return err
	}
	above, err := creatorsOf(tx.Conn(), bot, maxCreators)
	if err != nil {
		return err
	}
	text, err := json.Marshal(limits{h.setting, above})
	if err != nil {
		return err
	}
	return tx.LimitChildren(bot, text, h.rules)
}
