package ahead

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"agent/internal/sonny/doctor"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/setup"
)

// FirstRun is the screen that asks for a provider, before there is a daemon (sonny.md
// 19.1). Its functions do the work; the screen holds the key only while it is tried.
type FirstRun struct {
	Term    Terminal
	Keys    *keys.Map
	Version string
	Folder  string   // what the folder is, in a line
	Rows    []Fact   // who can be asked, with what that comes to
	Models  []string // of the providers that are connected already
	Efforts []string // what a model can be told of it, from the least; the first is its own
	Choice  Choice   // the model that holds
	// TourModel is the model of the tour, which is none once a provider is connected.
	TourModel string

	Try     func(ctx context.Context, p setup.Provider, key string) (models []string, err error)
	Keep    func(p setup.Provider, key string, models []string) error
	Bedrock func(key, region string) error
	Spec    func(spec string) (variable string, err error) // looks at one before its key is asked for; "": it needs none
	Other   func(spec, key string) error
	Tour    func() error
	SignIn  func(ctx context.Context) error // runs on the terminal itself

	Suggest   func(models []string) string
	KeepModel func(Choice) error
	Sandbox   func(ctx context.Context) []doctor.Check // makes the checks; it takes up to a minute, beside the screen
	Mend      func(doctor.Check) string                // the command that would mend what one found; "" for none
	Set       func(key, value string) error            // a setting
	Held      func() (row string, e Extras)            // what the settings say now
	// TestNotify sends a notification by the terminal; run starts a program for it, nil for
	// none, and is called beside the screen.
	TestNotify func() (said string, run func(ctx context.Context) error, err error)

	w, h    int
	step    step
	field   edit.Field
	hand    int // the row at hand: 0 is the key
	key     string
	whose   setup.Provider
	listed  []string // by the provider that was tried
	message string
	was     string // what was said before a page was opened
	bad     bool
	results chan func()
	aloud   *Aloud // it is read out, and answered by lines; nil
	work    sync.WaitGroup

	openFrom step // that the rows were opened from

	connected bool // a provider is, by a key that was kept here

	page    *page // that is open; nil for none
	models  []string
	choice  Choice
	chosen  bool // a model was taken here
	sandbox checked
	row     string
	extras  Extras
}

// Fact is a thing and what it is.
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
	askOpen // the word for the row that confines nothing
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
	ctx, cancel := context.WithCancel(ctx)
	defer f.work.Wait()
	defer cancel()
	f.results = make(chan func(), 1)
	if aloud, ok := f.Term.(*Aloud); ok {
		aloud.takesLines(f.asksKey)
		defer aloud.takesLines(nil)
		f.aloud = aloud
	}
	f.begin(ctx)
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
				f.pasted(strings.TrimSpace(e.Text))
			case spoken:
				f.aloud.taken()
				done, err := f.line(ctx, strings.TrimSpace(e.Text))
				if done || err != nil {
					return f.left(done, err)
				}
			case term.Key:
				done, err := f.press(ctx, e)
				if done || err != nil {
					return f.left(done, err)
				}
			}
		}
	}
}

// left is what the screen comes to as it is left: put off, it is with what is done.
func (f *FirstRun) left(done bool, err error) (bool, error) {
	if errors.Is(err, errLater) {
		return f.connected, nil
	}
	return done, err
}

// begin takes what holds, and has the sandbox checked.
func (f *FirstRun) begin(ctx context.Context) {
	f.models, f.choice = f.Models, f.Choice
	f.fresh()
	f.checkSandbox(ctx)
}

// fresh takes what the settings say now.
func (f *FirstRun) fresh() {
	if f.Held != nil {
		f.row, f.extras = f.Held()
	}
}

// beside does work beside the screen, and what that gives in its loop.
func (f *FirstRun) beside(ctx context.Context, work func(context.Context) func()) {
	f.work.Go(func() {
		done := work(ctx)
		select {
		case f.results <- done:
		case <-ctx.Done():
		}
	})
}

// pasted takes a text into what is being written.
func (f *FirstRun) pasted(s string) {
	switch {
	case f.page == nil:
		f.field.Editor().Type(s)
	case f.page.Typing:
		f.page.Filter.Editor().Type(s)
		f.page.At = ""
	}
}

// copy puts a text into the terminal's clipboard, where that takes one.
func (f *FirstRun) copy(s string) {
	if f.Term.Copy(s) {
		f.say("copied: "+s, false)
		return
	}
	f.say("this terminal takes no copy; select it: "+s, false)
}

// press takes a key. done is true when a provider is connected and taken.
func (f *FirstRun) press(ctx context.Context, k term.Key) (done bool, err error) {
	switch {
	case k.Name == "ctrl+c":
		return false, errLater
	case f.page != nil:
		if f.page.key(f, k) {
			f.closePage()
		}
	case f.opens(ctx, k.Name):
	case k.Name == "esc":
		if f.step == askKey {
			return false, errLater
		}
		f.back()
	case f.step == trying:
	case f.step == connected:
		return f.start(k.Name), nil
	case f.step == refused && k.Name == "k":
		f.keep(f.listed)
	case k.Name == "enter":
		return f.enter(ctx)
	case f.step == askWhose:
		return false, f.pickWhose(ctx, k.Name)
	case f.step == askKey && f.field.Empty() && len(k.Name) == 1 && k.Name >= "1" && k.Name <= "4":
		return f.choose(ctx, int(k.Name[0]-'0'))
	default:
		f.hand = 0
		f.field.Key(f.Keys, k.Name, k.Text)
	}
	return false, nil
}

// start goes on with a provider that is connected, with the model that is proposed unless
// another was taken.
func (f *FirstRun) start(key string) bool {
	if key != "enter" {
		return false
	}
	if !f.chosen && f.choice.Model != "" {
		f.keepModel()
		return f.chosen
	}
	return true
}

func (f *FirstRun) back() {
	if f.step == askOpen {
		f.leaveOpen()
		return
	}
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
		return f.takeSpec()
	case askSpecKey:
		return f.ended(f.Other(f.key, strings.TrimSpace(f.field.Text())))
	case askOpen:
		f.takeOpen(strings.TrimSpace(f.field.Text()))
	case refused:
		f.back()
	}
	return false, nil
}

// takeSpec looks at a spec, and asks for its key where it has one.
func (f *FirstRun) takeSpec() (bool, error) {
	spec := strings.TrimSpace(f.field.Text())
	variable, err := f.Spec(spec)
	if err != nil {
		f.refuse(fault.Screen.Told(err).Detail)
		return false, nil
	}
	f.field.Clear()
	if variable == "" {
		return f.ended(f.Other(spec, ""))
	}
	f.key, f.step = spec, askSpecKey
	f.say("its key, kept as "+variable+"; empty for none", false)
	return false, nil
}

// refuse says why what was written is not taken. A line begins anew.
func (f *FirstRun) refuse(why string) {
	if f.aloud != nil {
		f.field.Clear()
	}
	f.say(why, true)
}

// take looks whose the key is and tries it.
func (f *FirstRun) take(ctx context.Context) {
	key, err := setup.Clean(f.field.Text())
	switch {
	case err != nil:
		f.refuse(fault.Screen.Words(err))
		return
	case setup.Digits(key):
		f.refuse("that number is none of these, and a key is not of digits alone")
		return
	case f.aloud != nil && setup.Short(key): // a line may be anything that was meant as an answer
		f.refuse("that is too short for a key, and none of the numbers")
		return
	}
	f.key = key
	f.field.Clear()
	p, ok := setup.Whose(key)
	if !ok {
		f.step = askWhose
		f.say("Whose key is it?  1 Anthropic  2 OpenAI  3 OpenRouter", false)
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
	f.beside(ctx, func(ctx context.Context) func() {
		models, err := f.Try(ctx, p, key)
		return func() { f.tried(models, err) }
	})
}

// tried is what came of it: a refusal keeps nothing unless the person says so; a
// provider that could not be reached is kept with a warning.
func (f *FirstRun) tried(models []string, err error) {
	if f.step != trying {
		return // the person went back meanwhile
	}
	f.listed = models
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
	f.key, f.step, f.hand, f.connected = "", connected, 0, true
	f.models = append(slices.DeleteFunc(slices.Clone(f.models), func(m string) bool { return strings.HasPrefix(m, f.whose.Name+"/") }), models...)
	if f.choice.Model == "" || f.choice.Model == f.TourModel {
		f.choice.Model = f.suggestion()
	}
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
		f.say("its spec, "+setup.SpecForm+" (docs/PROVIDERS.md)", false)
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
