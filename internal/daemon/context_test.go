package daemon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextItems = 12
		h.set.Limits.ContextBytes = 64 << 10
		s := h.fake(family, fakemodel.Options{
			Window: true, Bodies: true, Keep: 40,
			Handler: func(r *fakemodel.Request) fakemodel.Reply {
				return fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Thinking("hm"), fakemodel.Text("answer to " + r.Prompt)}}
			},
		})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "history note")
		k.follow("Ada", 0)
		for i := range 30 {
			sub := k.submit("Ada", fmt.Sprint("r", i), fmt.Sprintf("prompt number %d", i), "")
			k.until("turn_finished", sub.Turn)
			if o := k.result("Ada", sub.Turn); o.Status != "completed" {
				t.Fatalf("turn %d: %+v", i, o)
			}
		}
		var bodies []string
		for _, r := range s.Requests() {
			bodies = append(bodies, string(r.Body))
		}
		t.Run("RT-79 the window moves in jumps, its prefix stays between them and the note counts what is missing", func(t *testing.T) {
			prefix := func(body string) string {
				i := strings.Index(body, "Earlier parts of this conversation")
				if i < 0 {
					return "whole"
				}
				j := strings.Index(body[i:], "prompt number")
				return body[:i+j+len("prompt number 99")]
			}
			moves := 0
			for i := 1; i < len(bodies); i++ {
				if prefix(bodies[i]) != prefix(bodies[i-1]) {
					moves++
				}
			}
			if moves < 2 || moves > 15 {
				t.Errorf("the window moved %d times in %d requests", moves, len(bodies))
			}
			last := bodies[len(bodies)-1]
			if !strings.Contains(last, "The history tool returns them: turns 1 to ") || !strings.Contains(last, "prompt number 29") || strings.Contains(last, `answer to prompt number 3"`) {
				t.Errorf("the last request: %s", last)
			}
		})
		s.Verify(t)
	})
}

func TestNoteAndHistory(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextBytes = 30 << 10
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 3, Bodies: true})
		p := h.start()
		k := p.dial()
		k.fbot("Ada", h.workspace, "note history echo")
		k.follow("Ada", 0)
		turn := func(request string, replies ...fakemodel.Reply) (results []string) {
			t.Helper()
			s.Queue(replies...)
			sub := k.submit("Ada", request, "go "+request, "")
			for _, l := range k.until("turn_finished", sub.Turn) {
				if l.str("event") == "tool_completed" {
					var c protocol.ToolCompleted
					l.data(&c)
					results = append(results, k.item("Ada", c.Node))
				}
			}
			if o := k.result("Ada", sub.Turn); o.Status != "completed" {
				t.Fatalf("%s: %+v", request, o)
			}
			return results
		}
		sent := func() string { r := s.Requests(); return string(r[len(r)-1].Body) }

		turn("one", fakemodel.Say("a", fakemodel.Call("note", `{"text":"remember the milk"}`)), fakemodel.Say("noted"))
		turn("two", fakemodel.Say("b"))
		t.Run("a note goes ahead of the next requests, also after a crash", func(t *testing.T) {
			if !strings.Contains(sent(), "remember the milk") {
				t.Errorf("request %s", sent())
			}
			p.kill()
			p = h.start()
			k = p.dial()
			k.follow("Ada", 0)
			turn("three", fakemodel.Say("c"))
			if !strings.Contains(sent(), "remember the milk") {
				t.Errorf("request %s", sent())
			}
		})
		t.Run("RT-83 a note that does not fit is refused, the old one stands, clearing works", func(t *testing.T) {
			big, _ := json.Marshal(map[string]string{"text": strings.Repeat("n", 8<<10)})
			filler, _ := json.Marshal(map[string]string{"text": strings.Repeat("f", 9<<10)})
			got := turn("four", fakemodel.Say("x", fakemodel.Call("echo", string(filler))), fakemodel.Say("y", fakemodel.Call("note", string(big))), fakemodel.Say("z"))
			if len(got) != 2 || !strings.Contains(got[1], "note_context_limit") {
				t.Fatalf("results %.300s", got)
			}
			if !strings.Contains(sent(), "remember the milk") {
				t.Error("the earlier note is gone")
			}
			got = turn("five", fakemodel.Say("x", fakemodel.Call("note", `{"text":""}`)), fakemodel.Say("y"))
			turn("six", fakemodel.Say("x"))
			if !strings.Contains(got[0], "cleared") || strings.Contains(sent(), "Your note, carried forward") {
				t.Errorf("result %s, request %.400s", got[0], sent())
			}
		})
		t.Run("history returns an earlier turn in pages that join", func(t *testing.T) {
			var text string
			for offset := 0; ; {
				got := turn(fmt.Sprint("h", offset), fakemodel.Say("x", fakemodel.Call("history", fmt.Sprintf(`{"turn":4,"offset":%d,"limit":4000}`, offset))), fakemodel.Say("y"))
				var page struct {
					Text        string
					Next_offset int
					Done        bool
				}
				if err := json.Unmarshal([]byte(resultText(family, got[0])), &page); err != nil {
					t.Fatalf("%v: %s", err, got[0])
				}
				text += page.Text
				if page.Done {
					break
				}
				offset = page.Next_offset
			}
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			for _, l := range lines {
				if !json.Valid([]byte(l)) {
					t.Errorf("line %.100s", l)
				}
			}
			if !strings.Contains(lines[0], "go four") || !strings.Contains(text, strings.Repeat("f", 9<<10)) {
				t.Errorf("%d lines, the first %.200s", len(lines), lines[0])
			}
			if got := turn("none", fakemodel.Say("x", fakemodel.Call("history", `{"turn":999}`)), fakemodel.Say("y")); !strings.Contains(got[0], "turn_not_in_history") {
				t.Errorf("got %s", got[0])
			}
		})
		s.Verify(t)
	})
}

// resultText is the output inside a stored tool result.
func resultText(family, item string) string {
	var a struct {
		Output  string
		Content []struct{ Content json.RawMessage }
	}
	json.Unmarshal([]byte(item), &a)
	switch family {
	case "responses", "responses-ws":
		return a.Output
	case "chat":
		var c struct{ Content string }
		json.Unmarshal([]byte(item), &c)
		return c.Content
	}
	var s string
	json.Unmarshal(a.Content[0].Content, &s)
	return s
}

func TestContextLimit(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	h.set.Limits.ContextBytes = 8 << 10
	s := h.fake("responses", fakemodel.Options{Window: true})
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "echo")
	t.Run("RT-78 a turn that cannot fit fails rather than send less, and the bot goes on", func(t *testing.T) {
		text, _ := json.Marshal(map[string]string{"text": strings.Repeat("e", 10<<10)})
		s.Queue(fakemodel.Say("x", fakemodel.Call("echo", string(text))))
		o := k.run("Ada", "r", "go")
		if o.Status != "failed" || *o.Error != protocol.ContextLimit {
			t.Errorf("outcome %+v", o)
		}
		s.Queue(fakemodel.Say("fine"))
		if o := k.run("Ada", "r2", "again"); o.Status != "completed" {
			t.Errorf("the next %+v", o)
		}
	})
	s.Verify(t)
}

func TestRoundLimit(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{Handler: func(r *fakemodel.Request) fakemodel.Reply {
		return fakemodel.Say("again", fakemodel.Call("echo", `{"text":"x"}`))
	}})
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "echo")
	t.Run("RT-76 the 201st model call is not made", func(t *testing.T) {
		o := k.run("Ada", "r", "go")
		if o.Status != "failed" || *o.Error != protocol.ToolRoundLimit || s.Stats().Requests != 200 {
			t.Errorf("outcome %+v after %d requests", o, s.Stats().Requests)
		}
	})
	s.Verify(t)
}

func TestOutput(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"prefix":"big"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"head -c 200000 /dev/zero | tr '\\0' x"}}]},{"text":"${last}"}]},
		{"match":{"prefix":"huge"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"yes 0123456789 | head -c 5242880"}}]},{"text":"done"}]},
		{"match":{"prefix":"wide"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"yes 'é ä' | head -c 180000"}}]},{"text":"done"}]},
		{"match":{"prefix":"page"},"steps":[{"calls":[{"tool":"read","arguments":{"artifact":"1/call-1-0/stdout"}}]},{"text":"${last}"}]}]`)
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "shell read")
	k.bot("Eve", h.workspace, "shell read")
	k.follow("Ada", 0)
	t.Run("RT-26 CL-51 200,000 bytes show head and tail, and the artifact gives them all", func(t *testing.T) {
		sub := k.submit("Ada", "r1", "big", "")
		var c protocol.ToolCompleted
		for _, l := range k.until("turn_finished", sub.Turn) {
			if l.str("event") == "tool_completed" {
				l.data(&c)
			}
		}
		if len(c.Artifacts) != 1 || c.Artifacts[0] != "stdout" {
			t.Fatalf("artifacts %v", c.Artifacts)
		}
		item := k.item("Ada", c.Node)
		if len(item) > 70_000 || !strings.Contains(item, "134464") || !strings.Contains(item, fmt.Sprintf("%d/%s/stdout", sub.Turn, c.CallID)) {
			t.Errorf("the result, %d bytes, lacks the count or the reference", len(item))
		}
		total := 0
		for done := false; !done; {
			var page protocol.ArtifactPage
			k.ask(&page, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"stream":"stdout","offset":%d`, sub.Turn, c.CallID, total))
			if strings.Trim(page.Text, "x") != "" {
				t.Fatal("other bytes came")
			}
			total, done = total+len(page.Text), page.Done
		}
		if total != 200_000 {
			t.Errorf("%d bytes", total)
		}
		k.refused(protocol.TurnNotFound, "artifact", fmt.Sprintf(`"bot":"Eve","turn":%d,"call_id":%q,"stream":"stdout"`, sub.Turn, c.CallID))
		k.refused(protocol.ArtifactNotFound, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"stream":"stderr"`, sub.Turn, c.CallID))
		k.refused(protocol.ArtifactStreamRequired, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"offset":0`, sub.Turn, c.CallID))
		k.refused(protocol.InvalidArtifactPage, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"stream":"stdout","limit":3`, sub.Turn, c.CallID))
	})
	t.Run("RT-27 PO-102 5 MiB go to a private file that survives a restart and the sweep", func(t *testing.T) {
		sub := k.submit("Ada", "r2", "huge", "")
		k.until("turn_finished", sub.Turn)
		files, _ := filepath.Glob(filepath.Join(h.dir, "state.sqlite.files", "1", "*"))
		if len(files) != 1 {
			t.Fatalf("files %v", files)
		}
		info, _ := os.Stat(files[0])
		folder, _ := os.Stat(filepath.Dir(files[0]))
		if info.Mode().Perm() != 0o600 || folder.Mode().Perm() != 0o700 || info.Size() != 5<<20 {
			t.Errorf("%v %v %d", info.Mode(), folder.Mode(), info.Size())
		}
		stray := filepath.Join(filepath.Dir(files[0]), "stray")
		os.WriteFile(stray, []byte("x"), 0o600)
		p.kill()
		p = h.start()
		k = p.dial()
		if _, err := os.Stat(stray); err == nil {
			t.Error("a file that no row names was not swept")
		}
		var page protocol.ArtifactPage
		k.ask(&page, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":"call-3-0","stream":"stdout","offset":5242000`, sub.Turn))
		if page.TotalBytes != 5<<20 || !page.Done || !strings.HasPrefix(page.Text, "4567") && len(page.Text) != 880 {
			t.Errorf("page %+v", page)
		}
		os.Remove(files[0])
		if err := syscall.Mkfifo(files[0], 0o600); err != nil {
			t.Fatal(err)
		}
		k.refused(protocol.ArtifactNotFound, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":"call-3-0","stream":"stdout"`, sub.Turn))
	})
	t.Run("RT-26 pages begin at any character of a packed stream and end with a whole one", func(t *testing.T) {
		k.run("Ada", "r-wide", "wide")
		turn := k.submit("Ada", "r-wide", "wide", "").Turn // the same one
		p.stop(k)
		if n := h.onStore(`SELECT length(data) FROM artifacts WHERE raw_bytes = 180000`)[0]; n == 0 || n > 10_000 {
			t.Errorf("180,000 bytes of repeated text are kept in %d", n)
		}
		p = h.start()
		k = p.dial()
		page := func(offset, limit int) (page protocol.ArtifactPage) {
			k.ask(&page, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":"call-5-0","stream":"stdout","offset":%d,"limit":%d`, turn, offset, limit))
			return page
		}
		for _, row := range []struct {
			offset, limit int
			text          string
			next          int64
			done          bool
		}{
			{0, 4, "é ", 3, false},
			{16384 - 2, 6, " ä\né", 16388, false}, // over the border of two blocks
			{179994, 65536, "é ä\n", 180000, true},
			{180000, 4, "", 180000, true},
		} {
			if p := page(row.offset, row.limit); p.Text != row.text || p.NextOffset != row.next || p.Done != row.done || p.TotalBytes != 180_000 {
				t.Errorf("the page at %d: %+v", row.offset, p)
			}
		}
		for _, offset := range []int{1, 180_001} {
			k.refused(protocol.InvalidArtifactPage, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":"call-5-0","stream":"stdout","offset":%d`, turn, offset))
		}
	})
	t.Run("read pages the artifact for the bot that made it and for no other", func(t *testing.T) {
		if o := k.run("Ada", "r3", "page"); !strings.Contains(o.Text, "read_line_too_long") {
			t.Errorf("one line of 200,000 bytes: %.200s", o.Text)
		}
		if o := k.run("Eve", "r1", "page"); !strings.Contains(o.Text, "turn_not_found") {
			t.Errorf("another bot got %.200s", o.Text)
		}
	})
}

func TestPictures(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{Keep: 5, Bodies: true})
		p := h.start()
		k := p.dial()
		k.fbot("Ada", h.workspace, "read")
		img := image.NewRGBA(image.Rect(0, 0, 900, 700))
		rnd := rand.New(rand.NewPCG(1, 2))
		for y := range 700 {
			for x := range 900 {
				img.Set(x, y, color.RGBA{uint8(rnd.IntN(256)), uint8(rnd.IntN(256)), uint8(rnd.IntN(256)), 255})
			}
		}
		var buf bytes.Buffer
		if err := png.Encode(&buf, img); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h.workspace, "p.png"), buf.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Run("RT-37 a picture of 2 MB is sent, kept once for two views, and survives a restart", func(t *testing.T) {
			look := fakemodel.Say("x", fakemodel.Call("read", `{"path":"p.png"}`))
			s.Queue(look, fakemodel.Say("seen"), look, fakemodel.Say("seen again"))
			if o := k.run("Ada", "r1", "look"); o.Status != "completed" {
				t.Fatalf("outcome %+v", o)
			}
			p.kill()
			p = h.start()
			k = p.dial()
			if o := k.run("Ada", "r2", "look again"); o.Status != "completed" {
				t.Fatalf("outcome %+v", o)
			}
			r := s.Requests()
			if n := r[1].Bytes; n < int64(buf.Len()) || n > int64(buf.Len())*3/2 {
				t.Errorf("the request with one picture of %d bytes takes %d", buf.Len(), n)
			}
			info, err := os.Stat(h.set.Store)
			if err != nil {
				t.Fatal(err)
			}
			wal, _ := os.Stat(h.set.Store + "-wal")
			if size := info.Size(); size > int64(buf.Len())*3/2 && wal != nil {
				t.Errorf("the store takes %d bytes for one picture of %d", size, buf.Len())
			}
		})
		s.Verify(t)
	})
}
