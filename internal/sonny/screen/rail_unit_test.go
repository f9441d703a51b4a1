package screen

import (
	"fmt"
	"testing"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/edit"
	"agent/protocol"
)

// crowded is a screen with many tasks under its lead, and many busy sessions elsewhere.
func crowded(tasks int) *App {
	a := loaded(10, 0)
	var page []protocol.Bot
	folder, other := "/src/demo", "/src/other"
	for i := range tasks {
		page = append(page,
			protocol.Bot{ID: int64(100 + i), Name: fmt.Sprintf("demo.crowd%06d", i), Workspace: &folder},
			protocol.Bot{ID: int64(1_000_000 + i), Name: fmt.Sprintf("other%06d.lead", i), Workspace: &other})
	}
	a.world.Page(page)
	a.rail.page, a.rail.shown, a.rail.decided = &lead.Page{}, true, true
	a.draw()
	return a
}

// heard gives the screen an event of a turn's.
func heard(t testing.TB, a *App, kind, bot, data string) {
	t.Helper()
	e, err := protocol.ParseEvent(fmt.Appendf(nil, `{"event":%q,"bot":%q,"turn":7,"durable":true,"cursor":1,"data":%s}`, kind, bot, data))
	if err != nil {
		t.Fatal(err)
	}
	a.note(live.Note{Event: e})
	a.draw()
}

func TestRailIsBounded(t *testing.T) {
	t.Parallel()
	a := crowded(2000)
	rows, from := a.rail.panel.listed(a)
	if len(rows) != maxRail || from != 0 {
		t.Fatalf("%d rows from %d on", len(rows), from)
	}
	a.panel = a.rail.panel
	a.rail.panel.toEnd(a, true)
	rows, from = a.rail.panel.listed(a)
	if last := rows[len(rows)-1].name; len(rows) != maxRail || last != "demo.task8" || from != len(a.rail.rows)-maxRail {
		t.Errorf("%d rows from %d on, the last %q", len(rows), from, last)
	}
	a.rail.panel.Filter = &edit.Field{}
	a.rail.panel.Filter.Set("crowd0015")
	if rows, _ := a.rail.panel.listed(a); len(rows) != 100 {
		t.Errorf("the filter lets %d through", len(rows))
	}
}

// A frame costs no more with thousands of bots than with a few: what is allocated for it
// is counted.
func TestRailFramesWalkWhatIsDrawn(t *testing.T) {
	few, many := crowded(100), crowded(5000)
	cost := func(a *App) float64 { return testing.AllocsPerRun(20, a.draw) }
	if f, m := cost(few), cost(many); m > f*1.2 {
		t.Errorf("a frame allocates %.0f times with few bots, %.0f times with many", f, m)
	}
}

func TestRailHearsOtherFolders(t *testing.T) {
	t.Parallel()
	a := crowded(3)
	lists := func(bot string) bool { a.rail.fresh(a); _, is := a.rail.index[bot]; return is }
	if lists("other000001.lead") {
		t.Error("a session that is at rest is listed")
	}
	heard(t, a, protocol.KindAccepted, "other000001.lead", `{"request_id":"r","node":1,"workspace":null,"model":"m"}`)
	if !lists("other000001.lead") || lists("other000002.lead") {
		t.Error("the session that runs is not listed, or another is")
	}
	heard(t, a, protocol.KindTurnFinished, "other000001.lead", `{"status":"completed"}`)
	if lists("other000001.lead") {
		t.Error("a session whose turn ended is listed")
	}
}
