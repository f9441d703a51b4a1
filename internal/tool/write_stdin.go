package tool

import (
	"context"
	_ "embed"
	"time"

	"agent/protocol"
)

var (
	//go:embed write_stdin.md
	writeStdinText string
	//go:embed write_stdin.json
	writeStdinParameters string
)

// writeStdinTool talks to a background command (runtime.md 11, write_stdin).
var writeStdinTool = &builtin[writeStdinArgs]{
	name: "write_stdin", description: writeStdinText, parameters: writeStdinParameters,
	check: checkWriteStdin, run: runWriteStdin,
}

type writeStdinArgs struct {
	Handle  arg[string] `json:"handle"`
	Chars   arg[string] `json:"chars"`
	Close   arg[bool]   `json:"close"`
	Signal  arg[string] `json:"signal"`
	YieldMS arg[int64]  `json:"yield_ms"`
}

const (
	maxChars       = 64 << 10 // bytes
	maxYieldMS     = 30_000
	defaultYieldMS = 1_000
)

func checkWriteStdin(a *writeStdinArgs) *Failure {
	if f := first(required("handle", a.Handle), within("yield_ms", a.YieldMS, 0, maxYieldMS)); f != nil {
		return f
	}
	if len(a.Chars.value) > maxChars {
		return invalidf("chars is %d bytes; at most %d are taken: write them in pieces", len(a.Chars.value), maxChars)
	}
	switch a.Signal.or("INT") {
	case "INT", "TERM", "KILL":
		return nil
	}
	return invalidf("signal must be INT, TERM or KILL, not %s", shown(a.Signal.value))
}

func runWriteStdin(ctx context.Context, env *Env, a *writeStdinArgs) Result {
	if env.Beyond == nil {
		return env.refuse(failuref(protocol.UnknownHandle, "no command runs in the background here"))
	}
	return env.Beyond.Input(ctx, Input{
		Handle: a.Handle.value, Chars: a.Chars.value, Close: a.Close.value, Signal: a.Signal.value,
		Yield: time.Duration(a.YieldMS.or(defaultYieldMS)) * time.Millisecond,
	})
}
