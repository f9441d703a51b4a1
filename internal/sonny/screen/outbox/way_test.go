package outbox

import (
	"path/filepath"
	"slices"
	"testing"

	"agent/client"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// ada is a bot at rest, in a daemon of its own.
func ada(t *testing.T) (*client.Client, *protocol.Bot) {
	t.Helper()
	h := sonnytest.Fresh(t)
	if ran := h.Agent("start"); ran.Exit != 0 {
		t.Fatal(ran.Stderr)
	}
	if ran := h.Agent("run", "--new", "--bot", "ada", "--model", "scripted/sonny", "--workspace", h.Dir, "--", "say: hi"); ran.Exit != 0 {
		t.Fatal(ran.Stderr)
	}
	c := h.Client()
	bot, err := c.Inspect(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	return c, bot
}

// writesTo opens the composer of a bot.
func (b *bench) writesTo(bot *protocol.Bot) {
	b.world.Put(*bot)
	b.Address(b.box, to{b: b, name: bot.Name, id: bot.ID})
	b.Begin(nil, func() {})
	b.settle()
	b.Load(b.box, "")
	b.settle()
}

// inFile is what the composer's file says.
func (b *bench) inFile() pen.Kept {
	b.t.Helper()
	k, err := b.drafts.Load(b.box.key)
	if err != nil {
		b.t.Fatal(err)
	}
	return k
}

// places says how often a message is written, on its way and held in the file.
func places(k pen.Kept, words string) (n [3]int) {
	count := func(at int, d edit.Draft) {
		if text, _ := d.Message(); text == words {
			n[at]++
		}
	}
	count(0, k.Draft)
	for _, w := range k.Way {
		count(1, w.Draft)
	}
	for _, d := range k.Held {
		count(2, d)
	}
	return n
}

// requestsOf are the requests under which the daemon took a message.
func requestsOf(t *testing.T, c *client.Client, words string) (requests []string) {
	t.Helper()
	for turn, err := range c.Turns(t.Context(), "ada", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if turn.Prompt == words {
			requests = append(requests, turn.RequestID)
		}
	}
	return requests
}

const words = "say: the words"

func (b *bench) types() {
	b.box.Editor().Type(words)
	b.NoteChanges()
	b.Save()
	b.settle()
}

// send sends what is written, as Enter does.
func (b *bench) send() {
	m := Of(b.box.Editor().Draft())
	b.box.Editor().Sent()
	b.Post(b.box, m, true)
	b.settle()
}

func TestAMessageIsInOnePlaceAtEachStep(t *testing.T) {
	t.Parallel()
	c, bot := ada(t)
	written, onWay, held := [3]int{1, 0, 0}, [3]int{0, 1, 0}, [3]int{0, 0, 1}
	sees := func(t *testing.T, b *bench, when string, want [3]int) {
		t.Helper()
		if got := places(b.inFile(), words); got != want {
			t.Errorf("%s it is written, on its way and held %v times in its file, not %v", when, got, want)
		}
	}

	t.Run("that the daemon takes", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, c)
		b.writesTo(bot)
		b.types()
		sees(t, b, "typed", written)
		handed := 0
		b.handing = func() {
			handed++
			sees(t, b, "about to be handed over", onWay)
		}
		b.send()
		sees(t, b, "taken", [3]int{})
		if len(requestsOf(t, c, words)) != 1 || handed != 1 || len(b.failed) != 0 || !b.inFile().Empty() {
			t.Errorf("taken as %v, handed over %d times, failed %v, kept %+v", requestsOf(t, c, words), handed, b.failed, b.inFile())
		}
	})

	t.Run("that is refused", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, c)
		b.writesTo(&protocol.Bot{Name: "nobody", ID: 99})
		b.types()
		b.handing = func() { sees(t, b, "about to be handed over", onWay) }
		b.send()
		sees(t, b, "refused", written)
		if b.box.Text() != words || len(b.failed) != 1 {
			t.Errorf("the composer has %q; said is %v", b.box.Text(), b.failed)
		}
	})

	t.Run("whose bot is gone", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, c)
		b.writesTo(bot)
		b.box.to = to{b: b, name: bot.Name, id: bot.ID, gone: protocol.Fail("session_gone", "it was deleted")}
		b.handing = func() { t.Error("it was handed over") }
		b.types()
		b.send()
		if b.box.Text() != words || len(b.failed) != 1 {
			t.Errorf("the composer has %q; said is %v", b.box.Text(), b.failed)
		}
	})

	t.Run("that an interrupt holds, and that then goes on", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, c)
		b.writesTo(&protocol.Bot{Name: "nobody", ID: 99})
		b.hold(b.box.key, []Message{Text(words)})
		b.NoteChanges()
		b.Save()
		b.settle()
		sees(t, b, "held", held)
		b.handing = func() { sees(t, b, "about to be handed over", onWay) }
		b.Resume(b.box)
		b.settle()
		sees(t, b, "refused", held)
	})
}

// What a Sonny that was killed had on its way is asked for, and the daemon's word decides.
func TestWhatAKilledSonnyLeft(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name        string
		has, inLine bool
		text        string
		held        []string
	}{
		{"the daemon has it", true, false, "", nil},
		{"the daemon does not have it", false, false, words, nil},
		{"it was in line, and the daemon does not have it", false, true, "", []string{words}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, bot := ada(t)
			b := newBench(t, c)
			killed := pen.DraftsIn(b.kept)
			if _, err := killed.Sign(); err != nil {
				t.Fatal(err)
			}
			left := pen.Kept{Way: []pen.OnWay{{Request: persons + "left", Hand: "hand_left", Store: b.Store(), Bot: "ada", BotID: bot.ID, Draft: edit.Text(words), Held: row.inLine}}}
			if err := killed.Save(pen.OfBot(b.Store(), bot.ID), 1, left); err != nil {
				t.Fatal(err)
			}
			killed.Unsign()
			if row.has {
				if _, err := c.Submit(t.Context(), &protocol.Submit{Bot: "ada", RequestID: persons + "left", Prompt: words, Delivery: protocol.Queue}); err != nil {
					t.Fatal(err)
				}
			}
			b.writesTo(bot)
			if b.box.Text() != row.text || !slices.Equal(b.box.Held(), row.held) || len(b.flights) != 0 {
				t.Fatalf("the composer has %q, %q is held, %d are on their way", b.box.Text(), b.box.Held(), len(b.flights))
			}
			if files, err := filepath.Glob(filepath.Join(b.kept, "drafts", "*.json")); err != nil || len(files) > 1 || row.has != (len(files) == 0) {
				t.Errorf("files of drafts: %q, %v", files, err)
			}
			switch {
			case row.inLine:
				b.Resume(b.box)
				b.settle()
			case !row.has:
				b.send()
			}
			if got := requestsOf(t, c, words); !slices.Equal(got, []string{persons + "left"}) {
				t.Errorf("the daemon took it as %q", got)
			}
		})
	}
}
