package tool

import (
	"context"
	_ "embed"

	"agent/protocol"
)

var (
	//go:embed echo.md
	echoText string
	//go:embed echo.json
	echoParameters string
)

// echoTool returns its text (runtime.md 11, echo).
var echoTool = &builtin[echoArgs]{
	name: "echo", description: echoText, parameters: echoParameters, check: checkEcho, run: runEcho,
}

type echoArgs struct {
	Text arg[string] `json:"text"`
}

const maxEcho = 64 << 10 // bytes

func checkEcho(a *echoArgs) *Failure {
	if f := required("text", a.Text); f != nil {
		return f
	}
	if n := len(a.Text.value); n > maxEcho {
		return failuref(protocol.ToolOutputLimit, "text is %d bytes; at most %d can be returned", n, maxEcho)
	}
	return nil
}

func runEcho(_ context.Context, env *Env, a *echoArgs) Result {
	return Result{Output: string(env.Redact.Bytes([]byte(a.Text.value)))}
}
