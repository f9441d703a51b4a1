package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"agent/client/termsafe"
	"agent/internal/model/chatgpt"
	"agent/internal/model/chatgpt/signin"
	"agent/protocol"
)

var loginVerb = verb{
	name: "login", operands: "chatgpt", most: 1, words: []string{"chatgpt"},
	short: "chatgpt: sign in with a ChatGPT plan",
	long: "Signs in to ChatGPT through the browser, for the provider chatgpt. The sign-in is kept in\n" +
		"~/.agent/chatgpt.json, readable by you alone, and the daemon renews it.\n\n" +
		"While it lasts, at most ten minutes, this command listens on 127.0.0.1 for the browser's\n" +
		"answer, and nowhere else. On a machine without a browser use --paste: open the address on\n" +
		"another machine and paste the one that the browser ends up at, which it cannot show.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		l := &login{app: a, common: a.common(t)}
		t.toggle(&l.noBrowser, "no-browser", "only print the address; so over ssh and without a display")
		t.toggle(&l.paste, "paste", "listen for nothing: the address of the redirect is pasted on stdin")
		t.number(&l.port, "port", 1, 65535, "the callback's port; default 1455, then 1457")
		t.toggle(&l.status, "status", "say whether there is a sign-in, and end")
		return func(ctx context.Context, operands []string) error { return l.run(ctx, operands) }
	},
}

var logoutVerb = verb{
	name: "logout", operands: "chatgpt", most: 1, words: []string{"chatgpt"},
	short: "chatgpt: forget the ChatGPT sign-in",
	long:  "Removes ~/.agent/chatgpt.json. A daemon that runs stops using it at its next model call.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		a.common(t)
		return func(ctx context.Context, operands []string) error { return a.logout(ctx, operands) }
	},
}

// login is one run of the verb.
type login struct {
	app    *app
	common *common

	noBrowser, paste, status bool
	port                     int64
}

func (l *login) run(ctx context.Context, operands []string) error {
	issuer := os.Getenv("AGENT_CHATGPT_ISSUER")
	switch {
	case !forChatGPT(operands):
		return usagef("login knows one word: agent login chatgpt")
	case l.status && (l.paste || l.noBrowser || l.port != 0):
		return usagef("--status with a flag of the sign-in: it only looks; leave that flag out")
	case l.paste && l.noBrowser:
		return usagef("--paste with --no-browser: --paste opens none; leave --no-browser out")
	case issuer != "" && chatgpt.CheckIssuer(issuer) != "":
		return usagef("AGENT_CHATGPT_ISSUER: %s", chatgpt.CheckIssuer(issuer))
	}
	if err := refuseInside("login"); err != nil {
		return err
	}
	file, err := chatgpt.DefaultFile()
	if err != nil {
		return err
	}
	if l.status {
		return l.app.loginStatus(file)
	}
	return l.signIn(ctx, signin.Options{File: file, Issuer: issuer, Port: int(l.port), Version: Version, Opened: l.opened})
}

func forChatGPT(operands []string) bool { return len(operands) == 1 && operands[0] == "chatgpt" }

// refuseInside refuses what would change what a bot may do, to the bot.
func refuseInside(verb string) error {
	if !inside() {
		return nil
	}
	return protocol.Fail(protocol.InsideABot, verb+" is for the person, not for a bot")
}

func (l *login) signIn(ctx context.Context, o signin.Options) error {
	var (
		s   *chatgpt.SignIn
		err error
	)
	if l.paste {
		s, err = signin.Paste(ctx, o, l.app.stdin, func(why string) { l.app.note(why) })
	} else {
		s, err = signin.Run(ctx, o)
	}
	if err != nil {
		return loginError(err)
	}
	return l.signedIn(ctx, s, o.File.Path)
}

// loginError gives an error of the sign-in its code.
func loginError(err error) error {
	if code, detail := chatgpt.Reason(err); code != "" {
		return &protocol.Error{Code: protocol.Code(code), Detail: detail, Cause: err}
	}
	return err
}

// note says something to the person, on stderr.
func (a *app) note(text string) { fmt.Fprintf(a.stderr, "agent: %s\n", termsafe.OneLine(text)) }

// opened prints the address, and opens it in a browser where there is one.
func (l *login) opened(address string) error {
	line := []byte("Open this address to sign in:\n\n  " + address + "\n\n")
	if !l.app.pretty {
		line = append(appendText([]byte(`{"event":"open","url":`), address), "}\n"...)
	}
	if err := l.app.write(line); err != nil {
		return err
	}
	switch {
	case l.paste:
		l.app.note("sign in, then paste here the address that the browser ends up at, which it cannot show")
	case l.noBrowser:
	default:
		openBrowser(address)
	}
	return nil
}

// signedIn prints what was kept, and whether a daemon that runs has to be
// restarted to use it.
func (l *login) signedIn(ctx context.Context, s *chatgpt.SignIn, path string) error {
	restart := l.daemonLacks(ctx)
	line := []byte("Signed in to the account " + termsafe.OneLine(s.Account) + ".\nThe sign-in is kept in " + termsafe.OneLine(path) + ".\n")
	if !l.app.pretty {
		line = appendText([]byte(`{"event":"signed_in","account":`), s.Account)
		line = strconv.AppendInt(append(line, `,"expires_ms":`...), s.ExpiresAt*1000, 10)
		line = appendText(append(line, `,"path":`...), path)
		if restart {
			line = append(line, `,"restart":true`...)
		}
		line = append(line, "}\n"...)
	}
	if err := l.app.write(line); err != nil {
		return err
	}
	if restart {
		l.app.note("the daemon that runs has no provider chatgpt and must be restarted to use the sign-in: agent shutdown")
	}
	return nil
}

// lookTime is how long a daemon may take to say which providers it has.
const lookTime = 2 * time.Second

// daemonLacks reports that a daemon runs which has no provider chatgpt.
func (l *login) daemonLacks(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	daemon, err := l.app.connect(ctx, l.common, nil, startNever)
	if err != nil {
		return false
	}
	defer daemon.Close()
	has, ok := daemon.ready.Providers["chatgpt"]
	return !ok || has.Auth != "chatgpt"
}

// loginStatus says whether there is a sign-in. It reads no token out.
func (a *app) loginStatus(file chatgpt.File) error {
	s, _, err := file.Read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return loginError(err)
	}
	line := strconv.AppendBool([]byte(`{"signed_in":`), err == nil)
	if err == nil {
		line = appendText(append(line, `,"account":`...), s.Account)
		line = strconv.AppendInt(append(line, `,"expires_ms":`...), s.ExpiresAt*1000, 10)
	}
	line = appendText(append(line, `,"path":`...), file.Path)
	line = strconv.AppendBool(append(line, `,"codex_sign_in":`...), chatgpt.CodexSignedIn())
	return a.printObject(append(line, '}'))
}

func (a *app) logout(ctx context.Context, operands []string) error {
	if !forChatGPT(operands) {
		return usagef("logout knows one word: agent logout chatgpt")
	}
	if err := refuseInside("logout"); err != nil {
		return err
	}
	file, err := chatgpt.DefaultFile()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Dir(file.Path)); errors.Is(err, fs.ErrNotExist) {
		return a.printObject([]byte(`{"signed_out":false}`)) // nothing is made to find nothing
	}
	lock, err := file.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	removed, err := file.Remove()
	if err != nil {
		return err
	}
	return a.printObject(append(strconv.AppendBool([]byte(`{"signed_out":`), removed), '}'))
}
