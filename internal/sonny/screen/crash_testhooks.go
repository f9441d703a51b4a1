//go:build testhooks

package screen

import (
	"context"
	"fmt"

	"agent/protocol"
)

// testFeatures are parts of the screen for its tests alone: a command that crashes it.
func testFeatures() []feature {
	return []feature{{commands: []slashCommand{{"crash", "HOW", "crash", (*App).crashCommand}}}}
}

// crashCommand crashes the loop, with a panic that says what the person said or with a
// fault of memory, or what runs beside it.
func (a *App) crashCommand(how string) error {
	switch how {
	case "fault":
		var p *protocol.Bot
		p.ID++
	case "beside":
		do(a, func(context.Context) (struct{}, error) { panic(fmt.Sprint("all that was said: ", a.notes.list)) }, func(struct{}, error) {})
		return nil
	default:
		panic("all that was said: " + how)
	}
	return nil
}
