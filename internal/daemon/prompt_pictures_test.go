package daemon_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"agent/internal/fakemodel"
	"agent/internal/store"
	"agent/protocol"
)

// picture is the path of a picture that smallPicture wrote, and its base64.
func (h *host) picture(t *testing.T, i int) (path, text string) {
	t.Helper()
	smallPicture(t, h, i)
	path = filepath.Join(h.workspace, fmt.Sprintf("p%02d.png", i))
	return path, base64.StdEncoding.EncodeToString(content(t, path))
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// noisy writes a PNG that takes about 3 bytes a pixel.
func noisy(t *testing.T, path string, w, h int) {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(uint64(w), uint64(len(path))))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Uint32()) | byte(i%4/3*255) // opaque
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// naming is the member that names pictures.
func naming(paths ...string) string {
	list, _ := json.Marshal(paths)
	return `"pictures":` + string(list)
}

// imagePart is a picture in an item of a family.
func imagePart(family, text string) string {
	switch family {
	case "chat":
		return `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + text + `"}}`
	case "anthropic":
		return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + text + `"}}`
	}
	return `{"type":"input_image","image_url":"data:image/png;base64,` + text + `","detail":"auto"}`
}

// pictureTables hold pictures and what names them.
var pictureTables = []string{"pictures", "node_pictures", "turn_pictures", "picture_holds"}

// pictureRows fails the test unless a stopped daemon's store has so many
// pictures, named by so many nodes, and nothing that waits.
func (h *host) pictureRows(pictures, nodes int64) {
	h.t.Helper()
	got := h.rows(pictureTables...)
	if got["pictures"] != pictures || got["node_pictures"] != nodes || got["turn_pictures"] != 0 || got["picture_holds"] != 0 {
		h.t.Errorf("the store has %v, want %d pictures in %d nodes", got, pictures, nodes)
	}
	h.sound()
}

func TestPicturesInPrompts(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 60, Bodies: true, Handler: func(*fakemodel.Request) fakemodel.Reply {
			return fakemodel.Say("seen")
		}})
		p := h.start()
		k := p.dial()
		k.fbot("Ada", h.workspace, "read")
		one, oneText := h.picture(t, 1)
		two, twoText := h.picture(t, 2)
		// finished runs a submission to its end.
		finished := func(bot, request, prompt, more string) int64 {
			t.Helper()
			k.follow(bot, 0)
			sub := k.submit(bot, request, prompt, more)
			k.until("turn_finished", sub.Turn)
			if o := k.result(bot, sub.Turn); o.Status != "completed" {
				t.Fatalf("outcome %+v", o)
			}
			return sub.Turn
		}
		newest := func() string {
			reqs := s.Requests()
			return string(reqs[len(reqs)-1].Body)
		}
		parts := imagePart(family, oneText) + "," + imagePart(family, twoText) + "," + imagePart(family, oneText)
		t.Run("they follow the text in their order, also the one that is there twice", func(t *testing.T) {
			finished("Ada", "r1", "compare", naming(one, two, one))
			if body := newest(); !strings.Contains(body, `"text":"compare"},`+parts+`]`) {
				t.Errorf("the request: %s", body)
			}
		})
		t.Run("the item names them by their hash, and history shows the same", func(t *testing.T) {
			item := k.item("Ada", k.nodeOf("Ada", 1))
			if strings.Count(item, "@picture:") != 3 || strings.Contains(item, oneText) {
				t.Errorf("the item: %s", item)
			}
		})
		t.Run("a known request is answered, whatever its pictures are by now", func(t *testing.T) {
			if again := k.submit("Ada", "r1", "compare", naming("/gone.png")); !again.Duplicate || again.Turn != 1 {
				t.Errorf("answer %+v", again)
			}
			if again := k.submit("Ada", "r1", "compare", ""); !again.Duplicate {
				t.Errorf("answer %+v", again)
			}
			k.refused(protocol.IdempotencyConflict, "submit", submission("Ada", "r1", "else", naming("/gone.png")))
		})
		t.Run("a text that names a picture as an item does stays text, beside a picture and when that is left out", func(t *testing.T) {
			item := k.item("Ada", k.nodeOf("Ada", 1))
			at := strings.Index(item, "@picture:")
			copied := item[at : at+len("@picture:")+64]
			other := "@picture:" + strings.Repeat("ab", 32)
			k.fbot("Eve", h.workspace, "read")
			text := "what are " + copied + " and " + other
			finished("Eve", "r1", text, naming(one))
			// The marker is written so that only a reader of the JSON sees it.
			if body := newest(); strings.Count(body, oneText) != 1 || !decodes(body, text) {
				t.Errorf("the request: %s", body)
			}
			for i := range 17 {
				path, _ := h.picture(t, 20+i)
				finished("Eve", fmt.Sprint("r", 2+i), "more", naming(path))
			}
			if body := newest(); strings.Contains(body, oneText) || !decodes(body, text+"\n[picture no longer sent: "+one) {
				t.Errorf("the last request: %s", body)
			}
			k.ask(nil, "delete", `"bot":"Eve"`)
		})
		t.Run("they outlive a crash and the files", func(t *testing.T) {
			os.Remove(one)
			os.Remove(two)
			p.kill()
			p = h.start()
			k = p.dial()
			finished("Ada", "r2", "and now", "")
			if !strings.Contains(newest(), parts) {
				t.Error("the next request lacks them")
			}
		})
		t.Run("a fork has them, and keeps them when the source is deleted", func(t *testing.T) {
			k.ask(nil, "fork", fmt.Sprintf(`"source":"Ada","bot":"Bob","workspace":%q`, h.workspace))
			k.ask(nil, "delete", `"bot":"Ada"`)
			p.stop(k)
			h.pictureRows(2, 2)
			p = h.start()
			k = p.dial()
			finished("Bob", "r1", "you too", "")
			if !strings.Contains(newest(), parts) {
				t.Error("the fork's request lacks them")
			}
		})
		t.Run("RT-37 one that is too large is made smaller, and the daemon's child is gone", func(t *testing.T) {
			big := filepath.Join(h.workspace, "big")
			noisy(t, big, 1600, 100)
			finished("Bob", "r2", "large", naming(big))
			item := k.item("Bob", k.head("Bob")-1)
			if !strings.Contains(item, "@picture:") || strings.Contains(newest(), base64.StdEncoding.EncodeToString(content(t, big))) {
				t.Errorf("the item: %s", item)
			}
		})
		t.Run("nothing of them is left behind the last bot", func(t *testing.T) {
			k.ask(nil, "prune", `"bot":"Bob","keep_turns":0`)
			p.stop(k)
			h.pictureRows(3, 3)
			p = h.start()
			k = p.dial()
			k.ask(nil, "delete", `"bot":"Bob"`)
			p.stop(k)
			h.pictureRows(0, 0)
		})
		s.Verify(t)
	})
}

// decodes reports whether some string of a JSON text begins with want.
func decodes(text, want string) bool {
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		tok, err := dec.Token()
		if err != nil {
			return false
		}
		if s, ok := tok.(string); ok && strings.HasPrefix(s, want) {
			return true
		}
	}
}

// nodeOf is the node that a turn's accepted event names.
func (k *conn) nodeOf(bot string, turn int64) int64 {
	k.t.Helper()
	var page protocol.EventPage
	k.ask(&page, "events", fmt.Sprintf(`"bot":%q,"after":0,"limit":256`, bot))
	for _, e := range page.Events {
		var l struct {
			Turn  int64
			Event string
			Data  struct{ Node int64 }
		}
		if raw, _ := json.Marshal(e); json.Unmarshal(raw, &l) == nil && l.Turn == turn && l.Event == "accepted" {
			return l.Data.Node
		}
	}
	k.t.Fatalf("turn %d was not accepted", turn)
	return 0
}

func TestPicturesThatWait(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	var held atomic.Bool
	release := make(chan struct{})
	s := h.fake("anthropic", fakemodel.Options{Window: true, Keep: 60, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
		if strings.HasPrefix(r.Prompt, "hold") && !held.Swap(true) {
			<-release
		}
		return fakemodel.Say("seen")
	}})
	p := h.start()
	k := p.dial()
	k.fbot("Ada", h.workspace, "read")
	k.follow("Ada", 0)
	running := k.submit("Ada", "r1", "hold", "")
	var paths, texts []string
	for i := range 4 {
		path, text := h.picture(t, i)
		paths, texts = append(paths, path), append(texts, text)
	}
	queued := k.submit("Ada", "r2", "queued", `"delivery":"queue",`+naming(paths[0]))
	steer := k.submit("Ada", "r3", "steer", `"delivery":"steer",`+naming(paths[1]))
	dropped := k.submit("Ada", "r4", "dropped", `"delivery":"queue",`+naming(paths[2], paths[0]))
	k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, dropped.Turn))
	strict := k.submit("Ada", "r5", "strict", fmt.Sprintf(`"delivery":"steer","expected_turn":%d,%s`, running.Turn, naming(paths[3])))
	for _, path := range paths {
		os.Remove(path)
	}
	t.Run("a busy bot's refusal looks at no picture", func(t *testing.T) {
		k.refused(protocol.BotBusy, "submit", submission("Ada", "r6", "x", naming("/gone.png")))
	})
	t.Run("those of a submission that never runs go, unless something else has them", func(t *testing.T) {
		p.kill() // the running turn ends with it
		got := h.rows(pictureTables...)
		if got["pictures"] != 3 || got["turn_pictures"] != 3 || got["node_pictures"] != 0 || got["picture_holds"] != 0 {
			t.Errorf("the store has %v", got)
		}
	})
	close(release)
	p = h.start()
	k = p.dial()
	k.ask(nil, "follow", `"bot":"Ada","after":0`) // the queued turn may have ended already
	t.Run("RT-12 a queued one runs after a crash with its picture, a strict steer whose turn is over ends with its", func(t *testing.T) {
		k.until("turn_finished", queued.Turn)
		bodies := ""
		for _, r := range s.Requests() {
			bodies += string(r.Body)
		}
		if !strings.Contains(bodies, `"text":"queued"},`+imagePart("anthropic", texts[0])) || strings.Contains(bodies, texts[2]) || strings.Contains(bodies, texts[3]) {
			t.Errorf("the requests: %s", bodies)
		}
		for l := k.result("Ada", strict.Turn); !l.Finished; l = k.result("Ada", strict.Turn) {
			k.note()
		}
		if o := k.result("Ada", strict.Turn); o.Status != "failed" || *o.Error != protocol.StaleTurn {
			t.Errorf("the strict steer %+v", o)
		}
		for l := k.result("Ada", steer.Turn); !l.Finished; l = k.result("Ada", steer.Turn) {
			k.note()
		}
		reqs := s.Requests()
		if !strings.Contains(string(reqs[len(reqs)-1].Body), imagePart("anthropic", texts[1])) {
			t.Error("the steer's picture was not sent")
		}
		p.stop(k)
		h.pictureRows(2, 2)
	})
	s.Verify(t)
}

func TestSteeredPicture(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	began, release := make(chan struct{}), make(chan struct{})
	s := h.fake("responses", fakemodel.Options{Window: true, Keep: 60, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
		if r.Prompt == "hold" {
			close(began)
			<-release
		}
		return fakemodel.Say("seen")
	}})
	p := h.start()
	k := p.dial()
	k.fbot("Ada", h.workspace, "read")
	k.follow("Ada", 0)
	k.submit("Ada", "r1", "hold", "")
	<-began
	path, text := h.picture(t, 1)
	steer := k.submit("Ada", "r2", "look here", `"delivery":"steer",`+naming(path))
	close(release)
	k.until("turn_finished", steer.Turn)
	t.Run("RT-13 a steer brings its picture into the running turn", func(t *testing.T) {
		k.until("turn_finished", 0)
		reqs := s.Requests()
		if len(reqs) != 2 || !strings.Contains(string(reqs[1].Body), `"text":"look here"},`+imagePart("responses", text)) {
			t.Errorf("%d requests, the last: %s", len(reqs), reqs[len(reqs)-1].Body)
		}
		p.stop(k)
		h.pictureRows(1, 1)
	})
	s.Verify(t)
}

func TestPicturesThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "echo")
	good, _ := h.picture(t, 1)
	write := func(name string, content []byte) string {
		path := filepath.Join(h.workspace, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := content(t, good)
	wide := filepath.Join(h.workspace, "wide.png")
	noisy(t, wide, 8001, 1)
	pipe := filepath.Join(h.workspace, "pipe.png")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	secret := write("secret.png", whole)
	if err := os.Chmod(secret, 0); err != nil {
		t.Fatal(err)
	}
	unreadable := protocol.InvalidPicture
	if os.Getuid() == 0 {
		unreadable = "" // nothing is unreadable to root
	}
	many := make([]string, 9)
	for i := range many {
		many[i] = good
	}
	for _, row := range []struct {
		name  string
		paths []string
		code  protocol.Code
		says  string
	}{
		{"more than eight", many, protocol.PictureLimit, "9 pictures of at most 8"},
		{"a relative path", []string{"p01.png"}, protocol.InvalidPicture, "absolute"},
		{"no path", []string{""}, protocol.InvalidPicture, "absolute"},
		{"a path with a NUL", []string{"/a\x00.png"}, protocol.InvalidPicture, "absolute"},
		{"a file that is not there, behind one that is", []string{good, "/gone/a.png"}, protocol.InvalidPicture, "/gone/a.png: no such file"},
		{"a folder", []string{h.workspace}, protocol.InvalidPicture, "a folder"},
		{"RT-29 a named pipe, at once", []string{pipe}, protocol.InvalidPicture, "a named pipe"},
		{"what nobody may read", []string{secret}, unreadable, "permission denied"},
		{"text under a picture's name", []string{write("text.png", []byte("hello"))}, protocol.InvalidPicture, "text.png: it is no PNG, JPEG, GIF or WebP picture"},
		{"an empty file", []string{write("empty.png", nil)}, protocol.InvalidPicture, "it is no PNG"},
		{"a picture cut off", []string{write("cut.png", whole[:len(whole)-20])}, protocol.InvalidPicture, "damaged"},
		{"a picture too wide", []string{wide}, protocol.PictureLimit, "8001 by 1"},
		{"a file too large", []string{write("large.png", append(bytes.Clone(whole), make([]byte, 4<<20)...))}, protocol.PictureLimit, "4194304"},
		{"RT-123 one of the store's own files", []string{h.set.Store}, protocol.InvalidPicture, "the daemon's own"},
	} {
		t.Run(row.name+" is refused, and nothing is written", func(t *testing.T) {
			if row.code == "" {
				return
			}
			l := k.refused(row.code, "submit", submission("Ada", "r1", "look", naming(row.paths...)))
			if !strings.Contains(l.str("detail"), row.says) {
				t.Errorf("detail %s", l.raw)
			}
		})
	}
	t.Run("what needs no file is checked first", func(t *testing.T) {
		gone := naming("/gone.png")
		k.refused(protocol.BotNotFound, "submit", submission("Eve", "r1", "look", gone))
		k.refused(protocol.BotNotFound, "submit", submission("Ada", "r1", "look", `"bot_id":99,`+gone))
		k.refused(protocol.StaleTurn, "submit", submission("Ada", "r1", "look", `"delivery":"steer","expected_turn":7,`+gone))
		k.refused(protocol.ProviderUnavailable, "submit", submission("Ada", "r1", "look", `"model":"x/y",`+gone))
		k.refused(protocol.InvalidFrom, "submit", submission("Ada", "r1", "look", `"from":{"bot":"Ada","turn":9},`+gone))
		k.refused(protocol.WorkspaceMustExistAndBeAbsolute, "submit", submission("Ada", "r1", "look", `"workspace":"/gone",`+gone))
	})
	t.Run("the ready line says that pictures are taken", func(t *testing.T) {
		if !p.ready.Has("pictures") {
			t.Error(p.ready.Capabilities)
		}
	})
	var page protocol.TurnPage
	if k.ask(&page, "turns", `"bot":"Ada"`); len(page.Turns) != 0 {
		t.Errorf("%d turns were made", len(page.Turns))
	}
	p.stop(k)
	h.pictureRows(0, 0)
}

func TestPicturesOnFullDisk(t *testing.T) {
	h := newHost(t, echoScript)
	var faults store.Faults
	var keep, submit atomic.Bool
	breaks(&faults, "wrote:keep_picture", &keep, store.FaultFull)
	breaks(&faults, "wrote:submit", &submit, store.FaultFull)
	p := h.startHere(&faults)
	k := p.dial()
	k.bot("Ada", h.workspace, "echo")
	one, _ := h.picture(t, 1)
	two, _ := h.picture(t, 2)
	for name, full := range map[string]*atomic.Bool{"for the pictures": &keep, "for the submission": &submit} {
		t.Run("RT-93 no room "+name+" leaves nothing", func(t *testing.T) {
			full.Store(true)
			k.refused(protocol.StorageError, "submit", submission("Ada", "r1", "look", naming(one, two)))
			full.Store(false)
		})
	}
	t.Run("with room the same request works", func(t *testing.T) {
		k.follow("Ada", 0)
		sub := k.submit("Ada", "r1", "look", naming(one, two))
		k.until("turn_finished", sub.Turn)
	})
	t.Run("and what was kept in vain is dropped", func(t *testing.T) {
		var st protocol.Stats
		for st.Store.Operations["drop_pictures"].Count < 1 {
			k.ask(&st, "stats", "")
		}
	})
}

func TestKillAmongPictures(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "echo")
	one, _ := h.picture(t, 1)
	two, _ := h.picture(t, 2)
	// Six that take long, so that the kill finds the child at work.
	large := filepath.Join(h.workspace, "large.png")
	var buf bytes.Buffer
	fast := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := fast.Encode(&buf, image.NewGray(image.Rect(0, 0, 6000, 6000))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	paths := []string{one, two, large, large, large, large, large, large}
	k.request("submit", submission("Ada", "r1", "look", naming(paths...)))
	other := p.dial()
	for st := (protocol.Stats{}); st.Store.Operations["keep_picture"].Count < 2; {
		other.ask(&st, "stats", "")
	}
	p.kill()
	t.Run("RT-91 a kill between the pictures and their submission leaves neither", func(t *testing.T) {
		p = h.start()
		k = p.dial()
		var page protocol.TurnPage
		if k.ask(&page, "turns", `"bot":"Ada"`); len(page.Turns) != 0 {
			t.Fatalf("%d turns", len(page.Turns))
		}
		p.stop(k)
		h.pictureRows(0, 0)
	})
	t.Run("RT-4 the same request is admitted then", func(t *testing.T) {
		p = h.start()
		k = p.dial()
		k.follow("Ada", 0)
		sub := k.submit("Ada", "r1", "look", naming(paths[:2]...))
		k.until("turn_finished", sub.Turn)
		p.stop(k)
		h.pictureRows(2, 2)
	})
}

func TestPicturesInServedResults(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		f := h.fake(family, fakemodel.Options{Window: true, Keep: 60, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			if r.Rounds == 0 {
				return fakemodel.Say("x", fakemodel.Call("memory", `{"fact":"a"}`))
			}
			return fakemodel.Say("seen")
		}})
		p := h.start()
		k := p.dial()
		k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"f/Ada","instructions":"","tools":["read"],"workspace":%q,"client_tools":[%s]`, h.workspace, memoryTool("")))
		k.follow("Ada", 0)
		s := p.dial()
		lease := s.serve("sonny", 60_000)
		one, oneText := h.picture(t, 1)
		two, twoText := h.picture(t, 2)
		sub := k.submit("Ada", "r1", "go", "")
		call := address(sub.Turn, s.push().Data.CallID, lease.Lease)
		t.Run("bad ones are refused and the call still waits", func(t *testing.T) {
			s.refused(protocol.InvalidPicture, "tool_result", call+`,"output":"a",`+naming(one, "/gone.png"))
			s.refused(protocol.InvalidPicture, "tool_result", call+`,"output":"a",`+naming("p01.png"))
			s.refused(protocol.PictureLimit, "tool_result", call+`,"output":"a",`+naming(one, one, one, one, one, one, one, one, one))
			s.refused(protocol.InvalidToolResult, "tool_result", call+`,"error":{"code":"x"},`+naming(one))
			s.refused(protocol.NoPendingCall, "tool_result", address(sub.Turn, "nope", lease.Lease)+`,"output":"a",`+naming("/gone.png"))
		})
		t.Run("good ones are part of the result in the next request", func(t *testing.T) {
			s.ask(nil, "tool_result", call+`,"output":"two of them",`+naming(one, two))
			k.until("turn_finished", sub.Turn)
			if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "seen" {
				t.Fatalf("outcome %+v", o)
			}
			reqs := f.Requests()
			before := `"text":"two of them"},`
			if family == "chat" {
				before = `"content":"two of them"},{"role":"user","content":[{"type":"text","text":"[shown by the tools above, in this order: ` +
					one + "; " + two + `]"},`
			}
			if body := string(reqs[len(reqs)-1].Body); !strings.Contains(body, before+imagePart(family, oneText)+","+imagePart(family, twoText)+"]") {
				t.Errorf("the request: %s", body)
			}
		})
		t.Run("a late result is refused, and its pictures are not looked at", func(t *testing.T) {
			s.refused(protocol.StaleTurn, "tool_result", call+`,"output":"a",`+naming("/gone.png"))
		})
		p.stop(k)
		h.pictureRows(2, 2)
		f.Verify(t)
	})
}

func TestModelWithoutPictures(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 60, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			switch {
			case strings.Contains(string(r.Body), "iVBORw0KGgo"):
				switch family {
				case "responses":
					return fakemodel.HTTPError(404, "No endpoints found that support image input")
				case "chat":
					return fakemodel.HTTPError(500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj")
				}
				return fakemodel.HTTPError(400, "This model does not support image input")
			case strings.HasPrefix(r.Prompt, "read") && r.Rounds == 0:
				return fakemodel.Say("x", fakemodel.Call("read", `{"path":"p01.png"}`))
			}
			return fakemodel.Say("blind")
		}})
		p := h.start()
		k := p.dial()
		k.fbot("Ada", h.workspace, "read")
		k.fbot("Eve", h.workspace, "read")
		one, _ := h.picture(t, 1)
		t.Run("PV-73 a prompt's pictures go as text once the model has said that it takes none", func(t *testing.T) {
			k.follow("Ada", 0)
			sub := k.submit("Ada", "r1", "look", naming(one))
			seen := k.until("turn_finished", sub.Turn)
			if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "blind" {
				t.Fatalf("outcome %+v", o)
			}
			reqs := s.Requests()
			line := fmt.Sprintf("[picture not sent, the model takes none: %s, image/png, 4x4, ", one)
			if len(reqs) != 2 || !strings.Contains(string(reqs[1].Body), line) {
				t.Errorf("%d requests, the last: %s", len(reqs), reqs[len(reqs)-1].Body)
			}
			named := false
			for _, l := range seen {
				named = named || l.str("event") == "retry" && strings.Contains(l.str("detail"), "sent again without: "+one)
			}
			if !named {
				t.Error("no event names the picture")
			}
		})
		t.Run("read says of a picture that it was not shown, and asks the provider no more", func(t *testing.T) {
			before := len(s.Requests())
			if o := k.run("Ada", "r2", "read it"); o.Status != "completed" {
				t.Fatalf("outcome %+v", o)
			}
			reqs := s.Requests()[before:]
			if len(reqs) != 2 || !strings.Contains(string(reqs[1].Body), `\"width\":4,\"height\":4,`) || !strings.Contains(string(reqs[1].Body), `\"shown\":false}`) {
				t.Errorf("%d requests, the last: %s", len(reqs), reqs[len(reqs)-1].Body)
			}
		})
		t.Run("another model is asked for itself", func(t *testing.T) {
			before := len(s.Requests())
			if o := k.run("Eve", "r1", "read it"); o.Status != "completed" {
				t.Fatalf("outcome %+v", o)
			}
			if n := len(s.Requests()) - before; n != 3 {
				t.Errorf("%d requests", n)
			}
		})
		s.Verify(t)
	})
}

func TestPicturesOfASummarizedTurn(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextBytes = 64 << 10
		bigFiles(t, h, 20, 6<<10)
		var round, summaries atomic.Int64
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 200, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			if asksSummary(r) {
				return fakemodel.Say(fmt.Sprintf("SUMMARY-%d", summaries.Add(1)))
			}
			if i := round.Add(1) - 1; i < 20 {
				return fakemodel.Say("x", fakemodel.Call("shell", fmt.Sprintf(`{"command":"cat f%d"}`, i)))
			}
			return fakemodel.Say("done")
		}})
		k := h.start().dial()
		k.cbot("Ada", h.workspace, "shell", "")
		path, text := h.picture(t, 1)
		k.follow("Ada", 0)
		sub := k.submit("Ada", "r1", "the whole prompt", naming(path))
		k.until("turn_finished", sub.Turn)
		t.Run("RT-81 the prompt that stays whole keeps its picture", func(t *testing.T) {
			if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "done" || summaries.Load() == 0 {
				t.Fatalf("outcome %+v after %d summaries", o, summaries.Load())
			}
			for _, r := range s.Requests() {
				if n := strings.Count(string(r.Body), `"the whole prompt"},`+imagePart(family, text)); n != 1 {
					t.Errorf("request %d holds the prompt with its picture %d times", r.Seq, n)
				}
			}
		})
		s.Verify(t)
	})
}
