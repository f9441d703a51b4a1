package host

import "agent/protocol"

// showAgent offers a bot to the person: the call itself is the card on screen
// (sonny.md 29). It changes nothing.
func showAgent(c *Call) (any, error) {
	var a struct {
		Bot  string `json:"bot"`
		Note string `json:"note"`
	}
	if err := c.decode(&a); err != nil {
		return nil, err
	}
	other, err := c.h.Client.Inspect(c.ctx, a.Bot)
	if err != nil {
		return nil, err
	}
	mine, _, err := c.h.lead(c.ctx, c.bot)
	if err != nil {
		return nil, err
	}
	its, _, err := c.h.lead(c.ctx, other)
	if err != nil {
		return nil, err
	}
	if its.ID != mine.ID {
		return nil, protocol.Fail(protocol.BotNotFound, a.Bot+" is not under "+mine.Name+"; only agents under the same lead can be shown")
	}
	return struct {
		Bot   string `json:"bot"`
		BotID int64  `json:"bot_id"`
		Shown bool   `json:"shown"`
	}{other.Name, other.ID, true}, nil
}
