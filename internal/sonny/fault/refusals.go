package fault

import (
	"regexp"

	"agent/internal/sonny/snapshot"
	"agent/protocol"
)

// refusal is a part of the daemon's details that names commands and flags of the agent
// program, and what a person has in their place.
type refusal struct {
	part               *regexp.Regexp
	screen, verb, exec string
}

// refusals are by code. A detail without the part is as good here as there, and stays.
var refusals = map[protocol.Code][]refusal{
	protocol.DaemonPaused: {{
		regexp.MustCompile(`; --delivery queue.*$`),
		"; /unpause lets all go on", "; sonny unpause lets all go on", "; --delivery queue waits for sonny unpause",
	}},
	protocol.BotBusy: {{
		regexp.MustCompile(`: (steer it with|queue behind it with).*$`),
		"; Enter steers it, Tab queues behind it",
		"; wait for its end, or let sonny exec --delivery queue stand in line",
		"; --delivery queue waits in line, --delivery steer joins it, --fork NAME asks a copy of it",
	}},
	protocol.ActiveAgentLimit: {{
		regexp.MustCompile(`; --delivery queue.*$`),
		"; a message waits in line for one", "; try again when a turn is over", "; --delivery queue waits for one",
	}},
	protocol.ProviderUnavailable: {{
		regexp.MustCompile(`provider (\S+) is not registered with this daemon.*$`),
		"the daemon has no provider $1; /setup connects it, /model takes another",
		"the daemon has no provider $1; sonny setup connects it",
		"the daemon has no provider $1; sonny setup connects it, --model takes another",
	}},
	protocol.NoProviders: {{
		regexp.MustCompile(`: set ANTHROPIC_API_KEY.*$`),
		"; /setup connects one", "; sonny setup connects one", "; sonny setup connects one",
	}},
	protocol.WorkspaceUnavailable:     {moved},
	snapshot.Skipped:                  {moved},
	protocol.EscalationRefused:        {noGate},
	protocol.SandboxDenied:            {noGate, replaced, alias},
	protocol.ProviderLoginUnavailable: {signIn},
	protocol.ProviderLoginRejected:    {signIn},
	protocol.ProviderLoginExpired:     {signIn},
	protocol.LoginTimeout:             {signIn},
}

var (
	noGate = refusal{
		regexp.MustCompile(`; the person may set a gate \(agent configure[^)]*\)`),
		"; with /approval manual it asks you", "; a row that asks lets you allow it", "; a row that asks (--row auto) lets it be allowed",
	}
	moved = refusal{
		regexp.MustCompile(`the (git folder|folder|workspace) (.+?) is gone(; bring it back|$)`),
		"the $1 $2 is gone: it was moved or deleted; put it back there, or open sonny where it is now for a new lead; /export keeps what was said here",
		"the $1 $2 is gone: it was moved or deleted; put it back there, or run sonny where it is now for a new lead; sonny sessions export keeps what was said",
		"the $1 $2 is gone: it was moved or deleted; put it back there, or run sonny exec where it is now, without --session",
	}
	replaced = refusal{
		regexp.MustCompile(`it has become a link or is gone; configure the bot's folders anew`),
		"it has become a link or is gone; put the folder itself back there, or begin a new session where it is now (/new)",
		"it has become a link or is gone; put the folder itself back there, or begin a new session where it is now (sonny --new)",
		"it has become a link or is gone; put the folder itself back there, or run sonny exec where it is now, without --session",
	}
	alias = refusal{
		regexp.MustCompile(`; configure the bot's folders anew`),
		"; take that other name away, or begin a new session in another folder", "; take that other name away, or begin a new session in another folder",
		"; take that other name away, or run sonny exec in another folder",
	}
	signIn = refusal{
		regexp.MustCompile(`agent login chatgpt`),
		"/login", "sonny login chatgpt", "sonny login chatgpt",
	}
)

// here is a refusal's detail in the words that hold at w.
func (r *refusal) here(detail string, w Where) string {
	with := r.verb
	switch w {
	case Screen:
		with = r.screen
	case Exec:
		with = r.exec
	}
	return r.part.ReplaceAllString(detail, with)
}

// nobody is by whom the daemon says a pause is that gave no name.
const nobody = "client"

// Person is the name that a pause has which the person pulled in Sonny.
const Person = "person"

// Puller is who pulled the cord, by the names that a pause has: its by and by_id.
func Puller(by string, id *int64) string {
	switch {
	case id != nil:
	case by == Person:
		return "you"
	case by == nobody:
		return "a program that gave no name"
	}
	return by
}

// PausedBy says who pulled the cord, and why.
func PausedBy(p *protocol.PauseInfo) string {
	words := "paused by " + Puller(p.By, p.ByID)
	if p.Reason != nil && *p.Reason != "" {
		words += ": " + *p.Reason
	}
	return words
}

// paused is a refusal for a pause, with who pulled it as everywhere.
func paused(e *protocol.Error, detail string) string {
	var p protocol.PauseInfo
	if ok, err := e.Fact("by", &p.By); !ok || err != nil {
		return detail
	}
	if _, err := e.Fact("by_id", &p.ByID); err != nil {
		return detail
	}
	if _, err := e.Fact("reason", &p.Reason); err != nil {
		return detail
	}
	end := refusals[protocol.DaemonPaused][0].part.FindString(detail)
	return PausedBy(&p) + end
}
