package signin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"agent/internal/model"
	"agent/internal/model/chatgpt"
)

// pasteLimit bounds one pasted line.
const pasteLimit = 64 << 10

// Paste signs in without a listener: the person copies the address that the
// browser was sent to, which it could not open, into in. A line that is no
// answer of this sign-in is said to wrong and waited past. Codes are Run's.
func Paste(ctx context.Context, o Options, in io.Reader, wrong func(why string)) (*chatgpt.SignIn, error) {
	f := newFlow(o)
	port := f.Port
	if port == 0 {
		port = ports[0]
	}
	f.redirect = redirectOf(port)
	if err := o.Opened(f.address()); err != nil {
		return nil, err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	lines := readLines(ctx, in)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return nil, model.Errorf("login_refused", "the input ended before the address of the redirect came")
			}
			q, why := f.pasted(line)
			if why == "" {
				return f.finish(ctx, q)
			}
			wrong(why)
		case <-timer.C:
			return nil, model.Errorf("login_timeout", "nobody signed in within %s; run agent login chatgpt again", patience)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// readLines gives the lines that are not blank. The goroutine ends with the
// input, or with ctx and the next line.
func readLines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(in, pasteLimit)
		for {
			line, err := r.ReadSlice('\n')
			if text := strings.TrimSpace(string(line)); text != "" && !errors.Is(err, bufio.ErrBufferFull) {
				select {
				case lines <- text:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// pasted is the query of a pasted address, or why it is none of this sign-in.
func (f *flow) pasted(line string) (url.Values, string) {
	u, err := url.Parse(line)
	switch {
	case err != nil || u.Scheme != "http" || u.Path != callback:
		return nil, "that is not the address: it begins with " + f.redirect + "?"
	case !f.stateIs(u.Query().Get("state")):
		return nil, "that is the address of another sign-in; open the newest one that was printed"
	}
	return u.Query(), ""
}
