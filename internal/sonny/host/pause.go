package host

import "agent/protocol"

// pauseTool pulls the cord in the name of the calling bot and its turn (sonny.md 29).
// It ends that turn with the rest, so that its result is seldom read.
func pauseTool(c *Call) (any, error) {
	var a struct {
		Reason string `json:"reason"`
	}
	if err := c.decode(&a); err != nil {
		return nil, err
	}
	if len(a.Reason) > maxReason {
		return nil, invalid("reason", "at most 1024 bytes")
	}
	if err := c.begin(""); err != nil {
		return nil, err
	}
	var pulled protocol.Pause
	err := c.h.Client.Do(c.ctx, protocol.OpPause, &protocol.PauseRequest{
		From: &protocol.From{Bot: c.Bot, BotID: c.BotID, Turn: c.Turn}, Reason: a.Reason,
	}, &pulled)
	if err != nil {
		return nil, err
	}
	return &pulled, nil
}
