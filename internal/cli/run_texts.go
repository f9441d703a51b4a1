package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"agent/protocol"

	"golang.org/x/term"
)

// readPrompt is the operands, or standard input for a single - and where it is
// no terminal.
func (a *app) readPrompt(ctx context.Context, operands []string) (string, error) {
	prompt := strings.Join(operands, " ")
	if len(operands) == 1 && operands[0] == "-" || len(operands) == 0 {
		if f, ok := a.stdin.(*os.File); ok && len(operands) == 0 && term.IsTerminal(int(f.Fd())) {
			return "", usagef("run needs a prompt: agent run [FLAGS] [--] PROMPT…")
		}
		var err error
		if prompt, err = a.readInput(ctx); err != nil {
			return "", err
		}
	}
	switch {
	case !utf8.ValidString(prompt):
		return "", usagef("the prompt is not UTF-8")
	case strings.TrimSpace(prompt) == "":
		return "", usagef("the prompt is blank")
	case len(prompt) > protocol.MaxPrompt:
		return "", usagef("the prompt is over %d bytes; put the rest into a file that it names", protocol.MaxPrompt)
	}
	return prompt, nil
}

// readInput is standard input to its end, without the newlines there. It stops
// reading one past what a prompt may have, and when ctx ends.
func (a *app) readInput(ctx context.Context) (string, error) {
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(a.stdin, protocol.MaxPrompt+4096))
		done <- read{text, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return "", usagef("standard input cannot be read: %v", r.err)
		}
		return strings.TrimRight(string(r.text), "\r\n"), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// text is a new bot's instructions.
func (n *newBotFlags) text(preamble string) (string, error) {
	if n.instructionsFile != "" {
		return readText("instructions-file", n.instructionsFile)
	}
	if n.hasInstructions {
		return bounded("instructions", n.instructions)
	}
	return preamble, nil
}

// summary is by what a new bot's history is summarized; empty: never.
func (n *newBotFlags) summary(built string) (string, error) {
	switch {
	case n.noCompaction:
		return "", nil
	case n.compactionFile != "":
		return readText("compaction-instructions-file", n.compactionFile)
	case n.hasCompaction:
		return bounded("compaction-instructions", n.compaction)
	}
	return built, nil
}

func bounded(flag, text string) (string, error) {
	if len(text) > protocol.MaxText {
		return "", protocol.Fail(protocol.InstructionsLimit, fmt.Sprintf("--%s is over %d bytes", flag, protocol.MaxText))
	}
	return text, nil
}

// readText reads a whole text file, as far as its bound.
func readText(flag, path string) (string, error) {
	unreadable := func(why string) error {
		return protocol.Fail(protocol.InstructionsUnreadable, "--"+flag+" "+path+": "+why)
	}
	f, err := os.Open(path)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return "", unreadable(err.Error())
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, protocol.MaxText+1))
	switch {
	case err != nil:
		return "", unreadable(err.Error())
	case len(text) > protocol.MaxText:
		return "", protocol.Fail(protocol.InstructionsLimit, fmt.Sprintf("--%s %s is over %d bytes", flag, path, protocol.MaxText))
	case !utf8.Valid(text):
		return "", unreadable("it is not UTF-8")
	}
	return string(text), nil
}
