package daemon

import (
	"strings"
	"testing"

	"agent/internal/store"
	"agent/protocol"
)

// A follow that is not live when its bot goes has not heard of it yet: it may
// not turn live as if nothing had been.
func TestFollowOfADeletedBotTurnsNotLive(t *testing.T) {
	t.Parallel()
	f := newFanout()
	queued := func(fl *follow) (text string) {
		for _, l := range fl.s.out.lines {
			text += string(l.line)
		}
		return text
	}
	newFollow := func(bot int64) *follow {
		fl := &follow{s: &session{out: newOutput(nil, func() {})}, name: "Ada", bot: bot, cancel: func() {}}
		f.add(fl)
		return fl
	}
	live, replaying, namesake := newFollow(1), newFollow(1), newFollow(2)
	if !f.goLive(live, 0, 0) || !f.goLive(namesake, 0, 0) {
		t.Fatal("a follow did not turn live")
	}
	f.Deleted(1, "Ada", []byte(`{"event":"deleted"}`+"\n"))
	f.Publish(store.Batch{Events: []store.Event{{Cursor: 9, BotID: 2, Bot: "Ada", Kind: protocol.KindCreated, Line: []byte(`{"event":"created"}` + "\n")}}})
	if got := queued(live); !strings.Contains(got, "deleted") || strings.Contains(got, "created") {
		t.Errorf("the live one got %s", got)
	}
	if f.goLive(replaying, 9, 9) {
		t.Error("the one that replayed turned live")
	}
	if got := queued(namesake); strings.Contains(got, "deleted") || !strings.Contains(got, "created") {
		t.Errorf("the namesake's got %s", got)
	}
}
