package lead

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agent/client"
	"agent/protocol"
)

// maxTitle is how long a title made of a first message is, in characters.
const maxTitle = 48

// TitleOf makes a title of a session's first message: its first words on one line, at
// most 48 characters, cut between words where that is possible.
func TitleOf(message string) string {
	title := strings.Join(strings.Fields(message), " ")
	if utf8.RuneCountInString(title) <= maxTitle {
		return title
	}
	cut := string([]rune(title)[:maxTitle])
	if i := strings.LastIndexByte(cut, ' '); i > 0 {
		cut = cut[:i]
	}
	return cut + "…"
}

// minIDPrefix is how much of a bot's id names it at least.
const minIDPrefix = 6

// Named are the sessions that a word names (sonny.md 2): those of that title, else the
// one of that bot's name, else the one of that id or of an id that begins so, six
// characters at least. title gives a session's title, its own or one made of its first
// message; it is asked only for sessions that are there.
func Named(word string, all []Found, title func(*Found) string) []Found {
	for _, is := range []func(*Found) bool{
		func(f *Found) bool { return title(f) == word },
		func(f *Found) bool { return f.Bot == word },
		func(f *Found) bool {
			id := strconv.FormatInt(f.BotID, 10)
			return id == word || len(word) >= minIDPrefix && strings.HasPrefix(id, word)
		},
	} {
		var out []Found
		for i := range all {
			if is(&all[i]) {
				out = append(out, all[i])
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// OneNamed is the session that a word names. Errors: bot_not_found for none, usage for
// several, session_gone for one whose bot is no more.
func OneNamed(word string, all []Found, title func(*Found) string) (*Found, error) {
	named := Named(word, all, title)
	switch {
	case len(named) == 0:
		return nil, protocol.Fail(protocol.BotNotFound, fmt.Sprintf("no session has the title, bot name or id %q; sonny sessions --all lists them", word))
	case len(named) > 1:
		names := make([]string, len(named))
		for i := range named {
			names[i] = named[i].Bot
		}
		return nil, protocol.Fail(protocol.UsageError, fmt.Sprintf("%q is the title of several: %s; name the bot", word, strings.Join(names, ", ")))
	case named[0].Gone():
		return nil, named[0].gone()
	}
	return &named[0], nil
}

func (f *Found) gone() error {
	return protocol.Fail(SessionGone, fmt.Sprintf("the bot of session %s is gone, or its name is another's now; sonny sessions rm %d forgets the session", f.Bot, f.BotID))
}

// SessionGone is the code of a session whose bot is no more.
const SessionGone protocol.Code = "session_gone"

// Titles gives sessions' titles: their own, else one made of their first message, which
// is asked for once and only where it is needed. It belongs to one goroutine.
func Titles(ctx context.Context, c *client.Client) func(*Found) string {
	made := map[int64]string{}
	return func(f *Found) string {
		if f.Title != "" || f.Gone() {
			return f.Title
		}
		title, known := made[f.BotID]
		if !known {
			title, _ = FirstTitle(ctx, c, f.Record.Name)
			made[f.BotID] = title
		}
		return title
	}
}

// FirstTitle is a title of a bot's first turn; "" where there is none. An error is the
// daemon's, or the connection's.
func FirstTitle(ctx context.Context, c *client.Client, bot string) (string, error) {
	var page protocol.TurnPage
	err := c.Do(ctx, protocol.OpTurns, &protocol.Turns{Bot: bot, Limit: protocol.Set(int64(1))}, &page)
	if err != nil || len(page.Turns) == 0 {
		return "", err
	}
	return TitleOf(page.Turns[0].Prompt), nil
}

// ForkName is the name of a bot that is forked from another: SOURCE-fork, else with a
// number after it.
func ForkName(source string, taken func(string) bool) string {
	for n := 1; ; n++ {
		name := source + "-fork"
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		if !taken(name) {
			return name
		}
	}
}

// Forked is what is kept of a fork of this session.
func (f *Found) Forked(bot *protocol.Bot) Session {
	s := f.Session
	s.BotID, s.Bot, s.Kind, s.ForkOf = bot.ID, bot.Name, KindFork, f.BotID
	s.Title, s.Archived, s.Pinned, s.Before = "", false, false, nil
	s.Opened, s.Seen, s.SeenAt = time.Time{}, 0, time.Time{}
	return s
}
