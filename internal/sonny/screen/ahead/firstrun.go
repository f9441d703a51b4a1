package ahead

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/setup"
)

// FirstRun is the screen that asks for a provider, before there is a daemon (sonny.md
// 19.1). Its functions do the work; the screen holds the key only while it is tried.
type FirstRun struct {
	Term    Terminal
	Keys    *keys.Map
	Version string
	Facts   []Fact // what holds besides, with its checks

	Try     func(ctx context.Context, p setup.Provider, key string) (models []string, err error)
	Keep    func(p setup.Provider, key string, models []string) error
	Bedrock func(key, region string) error
	Other   func(spec, key string) error
	Tour    func() error
	SignIn  func(ctx context.Context) error // runs on the terminal itself

	w, h    int
	step    step
	field   edit.Field
	hand    int // the row at hand: 0 is the key
	key     string
	whose   setup.Provider
	models  []string
	message string
	bad     bool
	results chan func()
	aloud   bool // it is read out, and answered by lines
}

// Fact is a line of what is set already.
type Fact struct{ Name, Value string }

// step is what the screen waits for.
type step int

const (
	askKey step = iota
	askWhose
	trying
	refused // keep it anyway?
	connected
	askRegion
	askSpec
	askSpecKey
)

// choices are the rows below the key.
var choices = []struct{ name, does string }{
	{"ChatGPT plan", "sign in with the browser"},
	{"Amazon Bedrock", "AWS credentials or a Bedrock key"},
	{"other", "an endpoint and its key"},
	{"no key", "a tour with scripted words; no model, no network"},
}

// errLater is the end of a first run that the person put off.
var errLater = errors.New("later")

// Run asks until a provider is connected. It reports whether one is.
func (f *FirstRun) Run(ctx context.Context) (bool, error) {
	f.results = make(chan func(), 1)
	if aloud, ok := f.Term.(*Aloud); ok {
		aloud.hide(func() bool { return f.step == askKey || f.step == askSpecKey })
		defer aloud.hide(nil)
		f.aloud = true
	}
	var err error
	if f.w, f.h, err = f.Term.Size(); err != nil {
		return false, err
	}
	for {
		f.draw()
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case call := <-f.results:
			call()
		case e := <-f.Term.Events():
			switch e := e.(type) {
			case term.Closed:
				return false, e.Err
			case term.Resize:
				f.w, f.h = e.W, e.H
			case term.Paste:
				f.field.Editor().Type(strings.TrimSpace(e.Text))
			case term.Key:
				done, err := f.press(ctx, e)
				if errors.Is(err, errLater) {
					return false, nil
				}
				if err != nil || done {
					return done, err
				}
			}
		}
	}
}

// press takes a key. done is true when a provider is connected and taken.
func (f *FirstRun) press(ctx context.Context, k term.Key) (done bool, err error) {
	switch {
	case k.Name == "ctrl+c":
		return false, errLater
	case k.Name == "esc":
		if f.step == askKey {
			return false, errLater
		}
		f.back()
	case f.step == trying:
	case f.step == connected:
		return k.Name == "enter", nil
	case f.step == refused && k.Name == "k":
		f.keep(f.models)
	case k.Name == "up" && f.step == askKey:
		f.hand = max(0, f.hand-1)
	case k.Name == "down" && f.step == askKey:
		f.hand = min(len(choices), f.hand+1)
	case k.Name == "enter":
		return f.enter(ctx)
	case f.step == askWhose:
		return false, f.pickWhose(ctx, k.Name)
	case f.step == askKey && f.field.Empty() && len(k.Name) == 1 && k.Name >= "1" && k.Name <= "4":
		return f.choose(ctx, int(k.Name[0]-'0'))
	case f.aloud && len(k.Name) == 1: // a line of one character that is no choice
	default:
		f.hand = 0
		f.field.Key(f.Keys, k.Name, k.Text)
	}
	return false, nil
}

func (f *FirstRun) back() {
	f.step, f.message, f.bad, f.key = askKey, "", false, ""
	f.field.Clear()
}

func (f *FirstRun) enter(ctx context.Context) (bool, error) {
	switch f.step {
	case askKey:
		if f.hand > 0 {
			return f.choose(ctx, f.hand)
		}
		f.take(ctx)
	case askRegion:
		return f.ended(f.Bedrock(f.key, strings.TrimSpace(f.field.Text())))
	case askSpec:
		f.key = strings.TrimSpace(f.field.Text())
		f.field.Clear()
		f.step, f.message = askSpecKey, "its key; empty for none"
	case askSpecKey:
		return f.ended(f.Other(f.key, strings.TrimSpace(f.field.Text())))
	case refused:
		f.back()
	}
	return false, nil
}

// take looks whose the key is and tries it.
func (f *FirstRun) take(ctx context.Context) {
	key, err := setup.Clean(f.field.Text())
	if err != nil {
		if f.aloud { // a line begins anew
			f.field.Clear()
		}
		f.say(fault.Screen.Words(err), true)
		return
	}
	f.key = key
	f.field.Clear()
	p, ok := setup.Whose(key)
	if !ok {
		f.step, f.message = askWhose, "Whose key is it?  1 Anthropic  2 OpenAI  3 OpenRouter"
		return
	}
	f.try(ctx, p)
}

func (f *FirstRun) pickWhose(ctx context.Context, name string) error {
	all := setup.Providers()
	if len(name) == 1 && name >= "1" && int(name[0]-'0') <= len(all) {
		f.try(ctx, all[name[0]-'1'])
	}
	return nil
}

func (f *FirstRun) try(ctx context.Context, p setup.Provider) {
	f.whose, f.step = p, trying
	f.say("asking "+p.Label+" for its models…", false)
	key := f.key
	go func() {
		models, err := f.Try(ctx, p, key)
		f.results <- func() { f.tried(models, err) }
	}()
}

// tried is what came of it: a refusal keeps nothing unless the person says so; a
// provider that could not be reached is kept with a warning.
func (f *FirstRun) tried(models []string, err error) {
	if f.step != trying {
		return // the person went back meanwhile
	}
	f.models = models
	var no setup.Refused
	switch {
	case errors.As(err, &no):
		f.step = refused
		f.say(f.whose.Label+" says: "+no.Error()+"  ·  k keeps it anyway", true)
	case err != nil:
		f.keep(nil)
		f.say("kept, but not tried: "+fault.Screen.Words(err), true)
	default:
		f.keep(models)
	}
}

func (f *FirstRun) keep(models []string) {
	if err := f.Keep(f.whose, f.key, models); err != nil {
		f.back()
		f.say(fault.Screen.Words(err), true)
		return
	}
	f.key, f.step = "", connected
	f.say(fmt.Sprintf("✔ %s  %s", f.whose.Name, human.Count(len(models), "model", "models")), false)
}

func (f *FirstRun) choose(ctx context.Context, n int) (bool, error) {
	switch n {
	case 1:
		f.Term.Suspend()
		err := f.SignIn(ctx)
		if again := f.Term.Resume(); again != nil {
			return false, again
		}
		return f.ended(err)
	case 2:
		f.step, f.key = askRegion, ""
		f.say("AWS credentials of your environment are used. Their region:", false)
	case 3:
		f.step = askSpec
		f.say("its spec, NAME=FAMILY,URL,KEY_VARIABLE (docs/PROVIDERS.md)", false)
	case 4:
		return f.ended(f.Tour())
	}
	f.field.Clear()
	return false, nil
}

// ended is the end of a way that asks nobody.
func (f *FirstRun) ended(err error) (bool, error) {
	if err != nil {
		f.back()
		f.say(fault.Screen.Words(err), true)
		return false, nil
	}
	return true, nil
}

func (f *FirstRun) say(line string, bad bool) { f.message, f.bad = line, bad }

func (f *FirstRun) draw() {
	frame := term.NewFrame(f.w, f.h)
	f.view(frame)
	f.Term.Draw(frame)
}

func (f *FirstRun) view(frame *term.Frame) {
	w, h := frame.Size()
	c := frame.All()
	c.Put(0, 0, text.Join(text.Span{Text: " sonny", Attr: text.Bold}, text.Span{Text: "  first run"}).Right(text.Of(text.Dim, f.Version+" "), w), w)
	c.Put(0, 1, text.Across(w), w)
	y := 3
	put := func(l text.Line) { c.Put(0, y, l.Cut(w), w); y++ }
	put(text.Of(text.Plain, "   Paste a key from Anthropic, OpenAI or OpenRouter, or take a number."))
	y++
	f.keyRow(c, y, w)
	y += 2
	for i, choice := range choices {
		mark := "   "
		if f.hand == i+1 {
			mark = " ▎ "
		}
		put(text.Join(text.Span{Text: mark, Role: text.Accent}, text.Span{Text: fmt.Sprintf("%d  ", i+1), Role: text.Accent},
			text.Span{Text: text.Pad(choice.name, 19)}, text.Span{Text: choice.does, Role: text.Dim}))
	}
	y++
	if f.message != "" {
		role := text.Plain
		if f.bad {
			role = text.Fail
		}
		for _, l := range text.Wrap([]text.Span{{Text: cells.OneLine(f.message), Role: role}}, text.Frame{Width: max(10, w-4), First: text.Indent(3), Rest: text.Indent(3)}) {
			put(l)
		}
		y++
	}
	put(text.Of(text.Dim, "   already set; change it here or later"))
	for _, fact := range f.Facts {
		put(text.Join(text.Span{Text: "   " + text.Pad(fact.Name, 10), Role: text.Dim}, text.Span{Text: cells.OneLine(fact.Value)}))
	}
	y++
	put(text.Of(text.Dim, "   Agents read every file you can read, and write where the sandbox lets"))
	put(text.Of(text.Dim, "   them. Nothing is sent but to the providers you connect."))
	c.Put(0, h-2, text.Across(w), w)
	hint := " Enter try the key  ↑↓ move  Esc later"
	if f.step == connected {
		hint = " Enter start"
	}
	c.Put(0, h-1, text.Of(text.Dim, hint), w)
}

// keyRow is the field: a key is never shown.
func (f *FirstRun) keyRow(c term.Canvas, y, w int) {
	name := map[step]string{askRegion: "region", askSpec: "spec", askSpecKey: "key"}[f.step]
	if name == "" {
		name = "key"
	}
	mark := "   "
	if f.hand == 0 {
		mark = " ▎ "
	}
	shown := f.field.Text()
	if name == "key" {
		shown = strings.Repeat("•", min(len([]rune(shown)), max(0, w-16)))
	}
	c.Put(0, y, text.Join(text.Span{Text: mark, Role: text.Accent}, text.Span{Text: text.Pad(name, 6), Role: text.Dim}, text.Span{Text: cells.OneLine(shown), Role: text.User}), w)
	c.SetCursor(9+text.Width(shown), y)
}
