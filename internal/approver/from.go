package approver

import (
	"errors"
	"fmt"

	"agent/client/items"
	"agent/protocol"
)

// How far the person behind other bots is looked for (approvals.md 11).
const (
	maxLevels    = 8
	maxSenders   = 64        // turns
	maxFollowed  = 128 << 10 // bytes of the person's texts
	maxOwnSteers = 256       // prompts of one turn
)

// isGone reports whether what was asked for is not there, or not there any more.
func isGone(err error) bool {
	return errors.Is(err, protocol.BotNotFound) || errors.Is(err, protocol.TurnNotFound)
}

// following looks for the person behind prompts that other bots wrote.
type following struct {
	a     *collecting
	seen  map[int64]bool // turns
	bytes int
}

// said is what the person said in the turn that wrote a prompt, and in the turns
// that wrote that one's prompts, oldest first. Who spoke is in the records alone.
// A bot or a turn that is gone has no person above it. Each turn is followed once.
func (f *following) said(from *protocol.From, level int) ([]*entry, error) {
	if from.Turn == 0 || f.seen[from.Turn] {
		return nil, nil
	}
	if level > maxLevels || len(f.seen) == maxSenders {
		return nil, fmt.Errorf("%w: who asked stands too far away", errTooMuch)
	}
	f.seen[from.Turn] = true
	p, err := f.a.client.Prompts(f.a.ctx, from.Bot, from.Turn, 1)
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(p.Prompts) > maxOwnSteers {
		return nil, fmt.Errorf("%w: a turn with %d prompts", errTooMuch, len(p.Prompts))
	}
	var list []*entry
	for i := range p.Prompts {
		prompt := &p.Prompts[i]
		switch {
		case prompt.From != nil:
			more, err := f.said(prompt.From, level+1)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		case prompt.Origin == "":
			if f.bytes += int(prompt.Bytes); f.bytes > maxFollowed {
				return nil, fmt.Errorf("%w: what the person said to other bots", errTooMuch)
			}
			text, err := f.a.whole(from.Bot, prompt)
			if err != nil {
				return nil, err
			}
			list = append(list, &entry{kind: kindPerson, to: from.Bot, text: text, message: true})
		}
	}
	return list, nil
}

// whole is a prompt's text: one that was cut is read by its node.
func (a *collecting) whole(bot string, p *protocol.Prompt) (string, error) {
	if !p.Truncated {
		return p.Text, nil
	}
	if p.Node == 0 {
		return "", fmt.Errorf("%w: a prompt is cut", errTooMuch)
	}
	item, err := a.client.Item(a.ctx, bot, p.Node)
	if err != nil {
		return "", fmt.Errorf("%w: a prompt is cut: %w", errTooMuch, err)
	}
	for _, part := range items.Parts(item) {
		if part.Kind == items.User && len(part.Text) >= int(p.Bytes) {
			return part.Text, nil
		}
	}
	return "", fmt.Errorf("%w: a prompt is cut", errTooMuch)
}
