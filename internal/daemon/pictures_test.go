package daemon_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"agent/internal/fakemodel"
)

// smallPicture writes a PNG of one colour that no other index has.
func smallPicture(t *testing.T, h *host, i int) {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 4, 4))
	for p := range 16 {
		img.Set(p%4, p/4, color.RGBA{uint8(i * 7), uint8(i), 9, 255})
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.workspace, fmt.Sprintf("p%02d.png", i)), buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestManyPictures(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		for i := range 30 {
			smallPicture(t, h, i)
		}
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 60, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			if r.Rounds < 24 && r.Prompt == "look at all" {
				return fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Thinking("hm"), fakemodel.Call("read", fmt.Sprintf(`{"path":"p%02d.png"}`, r.Rounds))}}
			}
			return fakemodel.Say("seen")
		}})
		p := h.start()
		k := p.dial()
		k.fbot("Ada", h.workspace, "read")
		if o := k.run("Ada", "r1", "look at all"); o.Status != "completed" {
			t.Fatalf("outcome %+v", o)
		}
		sent := func(r *fakemodel.Request) int { return strings.Count(string(r.Body), "iVBORw0KGgo") }
		t.Run("the newest pictures go, older ones as text, in steps of four", func(t *testing.T) {
			outs := map[int]bool{}
			for i, r := range s.Requests() {
				lines := strings.Count(string(r.Body), "[picture no longer sent: ")
				if n := sent(r); n+lines != i || n > 16 || i <= 16 && lines > 0 || lines%4 != 0 {
					t.Errorf("request %d sends %d pictures and %d lines", i, n, lines)
				}
				outs[lines] = true
				if items := itemsOf(r); i > 0 && !strings.Contains(items[len(items)-1], "iVBORw0KGgo") {
					t.Errorf("request %d does not show its newest picture", i)
				}
			}
			if len(outs) != 3 {
				t.Errorf("steps %v", outs)
			}
			reqs := s.Requests()
			if last := string(reqs[len(reqs)-1].Body); !strings.Contains(last, "[picture no longer sent: p00.png, image/png, 4x4, ") {
				t.Errorf("the stub names no path: %.600s", last)
			}
		})
		t.Run("the choice outlives a crash", func(t *testing.T) {
			p.kill()
			k = h.start().dial()
			if o := k.run("Ada", "r2", "more"); o.Status != "completed" {
				t.Fatalf("outcome %+v", o)
			}
			reqs := s.Requests()
			if n := sent(reqs[len(reqs)-1]); n != 16 {
				t.Errorf("%d pictures", n)
			}
		})
		s.Verify(t)
	})
}

func TestRefusedPicture(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		for _, place := range []string{"named", "unnamed"} {
			t.Run(place, func(t *testing.T) {
				t.Parallel()
				h := newHost(t, "")
				_, bad := h.picture(t, 1)
				smallPicture(t, h, 2)
				var picky atomic.Bool
				s := h.fake(family, fakemodel.Options{Window: true, Keep: 60, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
					if picky.Load() {
						for i, item := range itemsOf(r) {
							if !strings.Contains(item, bad) {
								continue
							}
							if place == "unnamed" {
								return fakemodel.HTTPError(400, "Could not process image")
							}
							if family == "anthropic" {
								return fakemodel.HTTPError(400, fmt.Sprintf("messages.%d.content.0.tool_result.content.1.image.source.base64: the image cannot be processed", i))
							}
							if family == "chat" { // the instructions stand first
								return fakemodel.HTTPError(400, fmt.Sprintf("Invalid image at messages[%d].content[1].image_url", i+1))
							}
							return fakemodel.HTTPError(400, fmt.Sprintf("Invalid image at input[%d].output[1].image_url", i))
						}
					}
					if r.Rounds == 0 && strings.HasPrefix(r.Prompt, "look") {
						return fakemodel.Say("x", fakemodel.Call("read", `{"path":"p01.png"}`), fakemodel.Call("read", `{"path":"p02.png"}`))
					}
					return fakemodel.Say("seen")
				}})
				p := h.start()
				k := p.dial()
				k.fbot("Ada", h.workspace, "read")
				if o := k.run("Ada", "r1", "look"); o.Status != "completed" {
					t.Fatalf("outcome %+v", o)
				}
				picky.Store(true)
				t.Run("PV-73 a picture that the provider refuses in an old turn goes as text, named, and the bot goes on", func(t *testing.T) {
					before := len(s.Requests())
					sub := k.submit("Ada", "r2", "and now", "")
					seen := k.until("turn_finished", sub.Turn)
					if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "seen" {
						t.Fatalf("outcome %+v", o)
					}
					reqs := s.Requests()[before:]
					if len(reqs) != 2 || !strings.Contains(string(reqs[1].Body), "[picture not sent, the provider refused it: p01.png, ") {
						t.Fatalf("%d requests", len(reqs))
					}
					if kept := strings.Contains(string(reqs[1].Body), "iVBORw0KGgo"); kept != (place == "named") {
						t.Errorf("another picture is sent: %v", kept)
					}
					named := false
					for _, l := range seen {
						named = named || l.str("event") == "retry" && strings.Contains(l.str("detail"), "sent again without: p01.png")
					}
					if !named {
						t.Error("no event names the picture")
					}
				})
				t.Run("PV-73 it stays set aside after a crash and a later turn asks once", func(t *testing.T) {
					p.kill()
					k = h.start().dial()
					before := len(s.Requests())
					if o := k.run("Ada", "r3", "again"); o.Status != "completed" || len(s.Requests()) != before+1 {
						t.Errorf("outcome %+v after %d requests", o, len(s.Requests())-before)
					}
				})
				s.Verify(t)
			})
		}
	})
}
