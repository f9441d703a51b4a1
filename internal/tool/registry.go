package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"agent/internal/model"
	"agent/protocol"
)

// All is every built-in tool, sorted by name.
func All() []Tool {
	return []Tool{patchTool, echoTool, editTool, historyTool, noteTool, readTool, shellTool, waitTool, fetchTool, writeTool, writeStdinTool}
}

// Lookup finds a built-in tool.
func Lookup(name string) (Tool, bool) {
	for _, t := range All() {
		if t.Def().Name == name {
			return t, true
		}
	}
	return nil, false
}

// builtin is a tool whose arguments decode into an A.
type builtin[A any] struct {
	name        string
	description string
	parameters  string // its JSON schema
	// check says what is wrong with decoded arguments, or returns nil.
	check func(*A) *Failure
	run   func(context.Context, *Env, *A) Result
}

func (b *builtin[A]) Def() model.ToolDef {
	return model.ToolDef{
		Name: b.name, Description: b.description, Parameters: json.RawMessage(b.parameters),
	}
}

func (b *builtin[A]) Check(args json.RawMessage) error {
	if _, f := b.decode(args); f != nil {
		return f
	}
	return nil
}

func (b *builtin[A]) Run(ctx context.Context, env *Env, args json.RawMessage) Result {
	a, f := b.decode(args)
	if f != nil {
		return env.refuse(f)
	}
	return b.run(ctx, env, a)
}

func (b *builtin[A]) decode(args json.RawMessage) (*A, *Failure) {
	a := new(A)
	if f := decode(args, a); f != nil {
		return nil, f
	}
	if f := b.check(a); f != nil {
		return nil, f
	}
	return a, nil
}

// failuref makes a *Failure.
func failuref(code protocol.Code, format string, args ...any) *Failure {
	return &Failure{Code: string(code), Detail: fmt.Sprintf(format, args...)}
}

// refuse is the result of a call that failed with f, its detail redacted.
func (e *Env) refuse(f *Failure) Result {
	return Fail(f.Code, string(e.Redact.Bytes([]byte(f.Detail))))
}

// text is a result that is plain text, redacted.
func (e *Env) text(format string, args ...any) Result {
	return Result{Output: string(e.Redact.Bytes(fmt.Appendf(nil, format, args...)))}
}
