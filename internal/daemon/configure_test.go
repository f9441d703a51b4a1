package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

func TestConfigure(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{Keep: 1, Bodies: true, Handler: func(*fakemodel.Request) fakemodel.Reply { return fakemodel.Say("yes") }})
	h.set.Providers = append(h.set.Providers, "other=anthropic,"+s.URL+",F_KEY")
	other := filepath.Join(h.dir, "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "shell")
	k.follow("Ada", 0)
	set := func(members string) (b protocol.Bot) {
		t.Helper()
		k.ask(&b, "configure", `"bot":"Ada",`+members)
		return b
	}
	t.Run("the named parts are replaced, the others stay, and an event names them", func(t *testing.T) {
		b := set(fmt.Sprintf(`"workspace":%q,"budget_tokens":900000,"reasoning":"high","model":"f/two","settings":{"note_turns":3,"max_output_tokens":77}`, other))
		if *b.Workspace != other || *b.BudgetTokens != 900000 || *b.Reasoning != "high" || b.Model != "two" || b.Settings.NoteTurns.Or(0) != 3 {
			t.Errorf("record %+v", b)
		}
		var c protocol.Configured
		last(k.until("configured", 0)).data(&c)
		if !slices.Equal(c.Changed, []string{"settings", "workspace", "budget_tokens", "reasoning", "model"}) {
			t.Errorf("changed %v", c.Changed)
		}
		sub := k.submit("Ada", "r1", "x", "")
		k.until("turn_finished", sub.Turn)
		if r := lastRequest(s); r.Model != "two" || r.Effort != "high" || r.MaxTokens != 77 {
			t.Errorf("request for %s, %s, %d", r.Model, r.Effort, r.MaxTokens)
		}
		var page protocol.TurnPage
		if k.ask(&page, "turns", `"bot":"Ada"`); *page.Turns[0].Workspace != other {
			t.Errorf("turn %+v", page.Turns[0])
		}
		b = set(`"settings":{"note_turns":null,"context_items":9}`)
		if !b.Settings.NoteTurns.IsZero() || b.Settings.ContextItems.Or(0) != 9 || b.Settings.MaxOutputTokens.Or(0) != 77 || b.Model != "two" {
			t.Errorf("record %+v", b)
		}
	})
	t.Run("null clears", func(t *testing.T) {
		b := set(`"workspace":null,"budget_tokens":null,"reasoning":null,"settings":null`)
		if b.Workspace != nil || b.BudgetTokens != nil || b.Reasoning != nil || !b.Settings.MaxOutputTokens.IsZero() {
			t.Errorf("record %+v", b)
		}
		k.refused(protocol.WorkspaceRequired, "submit", submission("Ada", "r2", "x", ""))
	})
	t.Run("what cannot be is refused and changes nothing", func(t *testing.T) {
		for members, code := range map[string]protocol.Code{
			`"bot_id":99`: protocol.BotNotFound, `"workspace":"w"`: protocol.WorkspaceMustExistAndBeAbsolute,
			`"workspace":""`: protocol.WorkspaceMustExistAndBeAbsolute, `"budget_tokens":0`: protocol.InvalidBudget,
			`"reasoning":"hard"`: protocol.InvalidReasoningLevel, `"reasoning":""`: protocol.InvalidReasoningLevel,
			`"model":"x"`: protocol.InvalidModel, `"model":null`: protocol.InvalidModel, `"model":"none/x"`: protocol.ProviderUnavailable,
			`"model":"other/x"`: protocol.ProviderFamilyMismatch, `"settings":{"nope":1}`: protocol.InvalidSetting,
			`"gates":[{"tag":"me","tools":[]}]`: protocol.InvalidGate, `"rules":{"files":[{"name":"a","text":"x("}]}`: protocol.InvalidRules,
			`"sandbox":""`: protocol.InvalidSandbox, `"network":false`: protocol.InvalidSandbox, `"writable_roots":["/x"]`: protocol.InvalidWritableRoot,
			`"client_tools":[{"name":"t","description":"d","parameters":{"type":"array"},"tag":"x"}]`:      protocol.InvalidClientTool,
			`"client_tools":[{"name":"shell","description":"d","parameters":{"type":"object"},"tag":"x"}]`: protocol.ToolNameTaken,
			`"client_tools":[{"name":"t","description":"d","parameters":{"type":"object"},"tag":""}]`:      protocol.InvalidTag,
		} {
			k.refused(code, "configure", `"bot":"Ada",`+members)
		}
		k.refused(protocol.BotNotFound, "configure", `"bot":"Nobody"`)
		var before protocol.EventPage
		k.ask(&before, "events", `"bot":"Ada","after":0,"limit":256`)
		b := set(`"gates":[],"rules":null,"sandbox":"danger-full-access","network":true`)
		var after protocol.EventPage
		k.ask(&after, "events", `"bot":"Ada","after":0,"limit":256`)
		if b.Model != "two" || len(after.Events) != len(before.Events) {
			t.Errorf("record %+v, %d events after %d", b, len(after.Events), len(before.Events))
		}
	})
	t.Run("settings have the ranges of the daemon's flags", func(t *testing.T) {
		for _, row := range []struct {
			key       string
			good, bad []string
		}{
			{"context_bytes", []string{"1024"}, []string{"1023", `"1024"`, "1.5", "true"}},
			{"context_items", []string{"2"}, []string{"1"}},
			{"note_turns", []string{"0"}, []string{"-1"}},
			{"compact_at", []string{"26", "100"}, []string{"0", "25", "101"}},
			{"compact_keep", []string{"1", "74"}, []string{"0", "75"}},
			{"retain_turns", []string{"1"}, []string{"0"}},
			{"max_output_tokens", []string{"1", "4294967295"}, []string{"0", "4294967296"}},
			{"stall_timeout_seconds", []string{"1", "86400"}, []string{"0", "86401"}},
			{"keep_warm_seconds", []string{"0", "299"}, []string{"-1", "300"}},
			{"cache_ttl", []string{`"5m"`, `"1h"`}, []string{`"2h"`, `""`, "5"}},
			{"web_search", []string{`"live"`, `"cached"`}, []string{`"off"`}},
			{"approval_hold_ms", []string{"0", "600000", "null"}, []string{"-1", "600001"}},
		} {
			for _, v := range row.good {
				if b := set(fmt.Sprintf(`"settings":{%q:%s}`, row.key, v)); v != "null" && !strings.Contains(settingsLine(t, b), fmt.Sprintf(`%q:%s`, row.key, v)) {
					t.Errorf("%s %s: %s", row.key, v, settingsLine(t, b))
				}
				set(`"settings":null`)
			}
			for _, v := range row.bad {
				k.refused(protocol.InvalidSetting, "configure", fmt.Sprintf(`"bot":"Ada","settings":{%q:%s}`, row.key, v))
				k.refused(protocol.InvalidSetting, "create", fmt.Sprintf(`"bot":"X","model":"f/m","instructions":"","tools":[],"settings":{%q:%s}`, row.key, v))
			}
		}
		if b := set(`"settings":{"compact_at":20,"compact_keep":19}`); b.Settings.CompactAt.Or(0) != 20 {
			t.Errorf("record %+v", b.Settings)
		}
		k.refused(protocol.InvalidSetting, "configure", `"bot":"Ada","settings":{"compact_keep":null}`)
	})
	s.Verify(t)
}

func settingsLine(t *testing.T, b protocol.Bot) string {
	t.Helper()
	line, err := protocol.Append(nil, b.Settings)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func TestBotSettings(t *testing.T) {
	t.Parallel()
	t.Run("a bot's window, note and cache lifetime are its own", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, "")
		s := h.fake("anthropic", fakemodel.Options{Keep: 1, Bodies: true, Window: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			return fakemodel.Say("answer to " + r.Prompt)
		}})
		k := h.start().dial()
		for _, bot := range []struct{ name, settings string }{{"Ada", `{}`}, {"Bob", `{"context_items":8,"note_turns":0,"cache_ttl":"1h"}`}} {
			k.ask(nil, "create", fmt.Sprintf(`"bot":%q,"model":"f/%s","instructions":"Be brief.","tools":[],"workspace":%q,"settings":%s`, bot.name, bot.name, h.workspace, bot.settings))
			k.follow(bot.name, 0)
			for i := range 8 {
				sub := k.submit(bot.name, fmt.Sprint("r", i), fmt.Sprintf("prompt %d", i), "")
				k.until("turn_finished", sub.Turn)
			}
			items, ahead := sentItems(t, lastRequest(s))
			own := bot.name == "Bob"
			if (len(items) <= 8) != own || strings.Contains(string(lastRequest(s).Body), `"ttl":"1h"`) != own || strings.Contains(items[0], "prompt 0") == own {
				t.Errorf("%s sent %d items: %s %s", bot.name, len(items), ahead, items[0])
			}
		}
		t.Run("and configure moves them between two turns", func(t *testing.T) {
			k.ask(nil, "configure", `"bot":"Ada","settings":{"context_items":6}`)
			sub := k.submit("Ada", "more", "prompt 8", "")
			k.until("turn_finished", sub.Turn)
			if items, _ := sentItems(t, lastRequest(s)); len(items) > 6 {
				t.Errorf("%d items", len(items))
			}
		})
		s.Verify(t)
	})
	t.Run("a bot's retention is its own", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, echoScript)
		k := h.start().dial()
		k.bot("Ada", h.workspace, "")
		k.follow("Ada", 0)
		var turns []int64
		run := func() {
			sub := k.submit("Ada", fmt.Sprint("r", len(turns)), "x", "")
			k.until("turn_finished", sub.Turn)
			turns = append(turns, sub.Turn)
		}
		run()
		run()
		k.result("Ada", turns[0])
		k.ask(nil, "configure", `"bot":"Ada","settings":{"retain_turns":1}`)
		run()
		k.refused(protocol.TurnResultPruned, "result", fmt.Sprintf(`"bot":"Ada","turn":%d`, turns[1]))
		k.result("Ada", turns[2])
	})
	t.Run("a bot's stall is its own", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, "")
		s := h.fake("responses", fakemodel.Options{})
		s.Queue(fakemodel.Reply{Stall: true}, fakemodel.Say("at last"))
		k := h.start().dial()
		k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"f/Ada","instructions":"","tools":[],"workspace":%q,"settings":{"stall_timeout_seconds":1}`, h.workspace))
		if o := k.run("Ada", "r", "x"); o.Text != "at last" {
			t.Errorf("outcome %+v", o)
		}
		s.Verify(t)
	})
	t.Run("a budget set in the middle of a turn binds its next call", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, waitScript)
		k := h.start().dial()
		k.bot("Ada", h.workspace, "shell")
		k.follow("Ada", 0)
		sub := k.submit("Ada", "r", "wait", "")
		h.began()
		var b protocol.Bot
		k.ask(&b, "configure", `"bot":"Ada","budget_tokens":1`)
		h.letGo()
		k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); b.TokensUsed == 0 || o.Error == nil || *o.Error != protocol.BudgetExhausted {
			t.Errorf("outcome %+v after %d tokens", o, b.TokensUsed)
		}
	})
}
