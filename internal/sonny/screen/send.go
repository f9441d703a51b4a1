package screen

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"agent/client"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// delivery is how a message goes.
type delivery struct {
	queue bool // its own turn after this one
}

// send sends what the composer holds. The text is gone from it only when the daemon has
// it (sonny.md 10.2): a refusal loses nothing.
func (a *App) send(d delivery) {
	s := a.at()
	if s == nil {
		a.start.send(a)
		return
	}
	if a.wakeDaemon() {
		return
	}
	prompt := strings.TrimRight(s.compose.text(), "\n")
	if strings.TrimSpace(prompt) == "" {
		if !a.openMarked() {
			a.resumeHeld()
		}
		return
	}
	if command, ok := slash(prompt); ok {
		if a.command(command) {
			s.compose.clear()
		}
		return
	}
	prompt = strings.TrimPrefix(prompt, "/") // of //text
	req := &protocol.Submit{Bot: s.bot, BotID: s.id, RequestID: requestID(), Prompt: prompt, Delivery: protocol.Queue}
	steers := false
	if b := a.world.Bot(s.bot); b != nil && b.Turn != 0 && a.world.Paused == nil && !d.queue {
		req.Delivery, req.ExpectedTurn, steers = protocol.Steer, b.Turn, true
	}
	s.compose.e().Sent()
	s.up, s.mark = 0, pointer{}
	for _, keep := range a.sent {
		keep(a, prompt)
	}
	a.submit(s, req, steers)
}

// wakeDaemon starts a daemon that was ended, on the person's word. It reports whether
// there was need.
func (a *App) wakeDaemon() bool {
	if a.lost == nil || !a.lost.Stopped {
		return false
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return true
}

// submit hands a message to the daemon. It is retried with the same request id while
// the connection is away, so it is taken once.
func (a *App) submit(s *session, req *protocol.Submit, steers bool) {
	s.sending++
	a.hand(req, func(err error) {
		s.sending--
		if err == nil {
			return
		}
		s.giveBack(req.Prompt)
		switch {
		case steers && errors.Is(err, protocol.StaleTurn):
			a.notes.say("turn ended; Enter sends")
		case errors.Is(err, protocol.StorageError):
			a.notes.say("disk full; the message is still here")
		default:
			a.notes.fail(err)
		}
	})
}

// hand gives a message to the daemon, after the folder's files are kept as far as that
// is quick. then is told what came of it.
func (a *App) hand(req *protocol.Submit, then func(error)) {
	kept := a.keepFiles(req)
	do(a, func(ctx context.Context) (*protocol.Submitted, error) {
		kept(ctx)
		return client.Retry(ctx, func(ctx context.Context) (*protocol.Submitted, error) { return a.client().Submit(ctx, req) })
	}, func(_ *protocol.Submitted, err error) {
		if b := a.world.Bot(req.Bot); err == nil && b != nil {
			b.Prompted(req.RequestID, req.Prompt)
		}
		then(err)
	})
}

// giveBack puts a message that was refused into the composer, before what is there.
func (s *session) giveBack(prompt string) {
	if !s.compose.empty() {
		prompt += "\n" + s.compose.text()
	}
	s.compose.set(prompt)
}

func requestID() string { return "sonny_" + rand.Text() }

// slash reads a command line; //text is a message.
func slash(prompt string) (string, bool) {
	if !strings.HasPrefix(prompt, "/") || strings.HasPrefix(prompt, "//") {
		return "", false
	}
	line, _, _ := strings.Cut(prompt[1:], "\n")
	return line, true
}

// interrupt ends the turn of the bot on screen. The person's queued messages are
// withdrawn first and held, so that it never starts the next one (sonny.md 10.4).
func (a *App) interrupt() {
	s := a.at()
	if s == nil {
		return
	}
	b := a.world.Bot(s.bot)
	if b == nil || b.Turn == 0 {
		return
	}
	turn := b.Turn
	var mine []live.Turn
	for _, t := range b.Queue {
		if t.From == "" && strings.HasPrefix(t.Request, "sonny_") {
			mine = append(mine, t)
		}
	}
	a.notes.say("interrupting…")
	do(a, func(ctx context.Context) ([]string, error) {
		var held []string
		for _, t := range mine {
			if _, err := a.client().Interrupt(ctx, s.bot, t.ID, "held by the person"); err == nil {
				held = append(held, t.Prompt)
			}
		}
		_, err := a.client().Interrupt(ctx, s.bot, turn, "")
		return held, err
	}, func(held []string, err error) {
		s.held = append(s.held, held...)
		if err != nil && !errors.Is(err, protocol.NoActiveTurn) && !errors.Is(err, protocol.StaleTurn) {
			a.notes.fail(err)
		}
	})
}

// resumeHeld sends what an interrupt held, in order, or offers to go on.
func (a *App) resumeHeld() {
	s := a.at()
	held := s.held
	s.held = nil
	for _, prompt := range held {
		a.submit(s, &protocol.Submit{Bot: s.bot, BotID: s.id, RequestID: requestID(), Prompt: prompt, Delivery: protocol.Queue}, false)
	}
	if b := a.world.Bot(s.bot); len(held) == 0 && b != nil && b.Turn == 0 && b.CutOff() {
		s.compose.set("Continue.")
	}
}
