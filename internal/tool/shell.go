package tool

import (
	"context"
	_ "embed"
	"os"
	"strings"
	"sync"
	"time"

	"agent/internal/model"
	"agent/protocol"
)

var (
	//go:embed shell.md
	shellText string
	//go:embed shell.json
	shellParameters string
	//go:embed shell_sandboxed.md
	sandboxedText string
)

// shellTool runs a script, in the foreground or beyond its call (runtime.md 9
// and 11, shell).
var shellTool = &shellBuiltin{builtin[shellArgs]{
	name: "shell", description: shellText, parameters: shellParameters, check: checkShell, run: runShell,
}}

// shellBuiltin names, in its description, the shell that the model gets.
type shellBuiltin struct{ builtin[shellArgs] }

func (s *shellBuiltin) Def() model.ToolDef {
	def := s.builtin.Def()
	def.Description = strings.ReplaceAll(def.Description, "{{shell}}", FindShell())
	return def
}

// SandboxedDef is what the model of a sandboxed bot is told of a tool: for shell
// what the sandbox changes, too.
func SandboxedDef(t Tool) model.ToolDef {
	def := t.Def()
	if def.Name == "shell" {
		def.Description += sandboxedText
	}
	return def
}

type shellArgs struct {
	Command       arg[string] `json:"command"`
	TimeoutMS     arg[int64]  `json:"timeout_ms"`
	Background    arg[bool]   `json:"background"`
	Detach        arg[bool]   `json:"detach"`
	Stdin         arg[bool]   `json:"stdin"`
	Sandbox       arg[string] `json:"sandbox_permissions"`
	Justification arg[string] `json:"justification"`
}

const (
	maxCommand       = 16 << 10 // bytes
	maxJustification = 1 << 10  // bytes
	maxTimeoutMS     = 600_000
	defaultTimeoutMS = 120_000
)

// FindShell is the shell that commands run with: bash where one stands at a
// fixed path, else /bin/sh. It is looked up once (runtime.md 11, shell).
var FindShell = sync.OnceValue(func() string {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return "/bin/sh"
})

func checkShell(a *shellArgs) *Failure {
	command, why := a.Command.value, a.Justification.value
	if f := first(required("command", a.Command), within("timeout_ms", a.TimeoutMS, 1, maxTimeoutMS)); f != nil {
		return f
	}
	switch {
	case command == "":
		return invalidf("command is empty")
	case len(command) > maxCommand:
		return invalidf("command is %d bytes; at most %d are taken: write a script file and run that", len(command), maxCommand)
	case strings.ContainsRune(command, 0):
		return invalidf("command holds a NUL byte")
	case a.Detach.value && (a.Background.value || a.Stdin.value || a.TimeoutMS.given):
		return invalidf("detach excludes background, stdin and timeout_ms")
	case a.Stdin.value && !a.Background.value:
		return invalidf("stdin needs background")
	case len(why) > maxJustification:
		return invalidf("justification is %d bytes; at most %d are taken", len(why), maxJustification)
	}
	switch a.Sandbox.or("use_default") {
	case "use_default":
	case "require_escalated":
		if strings.TrimSpace(why) == "" {
			return invalidf("sandbox_permissions require_escalated needs a justification")
		}
	default:
		return invalidf("sandbox_permissions must be use_default or require_escalated, not %s", shown(a.Sandbox.value))
	}
	return nil
}

func runShell(ctx context.Context, env *Env, a *shellArgs) Result {
	there, err := beside(ctx, fileWork, func() bool {
		info, err := os.Stat(env.Workspace)
		return err == nil && info.IsDir()
	})
	if err != nil {
		return env.refuse(leftFailure(env.Workspace, err))
	}
	if !there {
		return env.refuse(failuref(protocol.WorkspaceUnavailable, "the workspace %s is gone", env.Workspace))
	}
	command, limit := a.Command.value, time.Duration(a.TimeoutMS.or(defaultTimeoutMS))*time.Millisecond
	switch {
	case (a.Background.value || a.Detach.value) && env.Beyond == nil:
		return env.refuse(failuref(protocol.CapacityExhausted, "nothing may outlive its call here"))
	case a.Background.value:
		return env.Beyond.Background(ctx, func(env *Env) (*Running, *Failure) {
			return startRunning(context.WithoutCancel(ctx), env, command, a.Stdin.value)
		}, limit)
	case a.Detach.value:
		return env.Beyond.Detach(func() (*Detached, *Failure) { return startDetached(ctx, env, command) })
	}
	if err := env.Processes.Acquire(ctx); err != nil {
		return env.refuse(failuref(protocol.Cancelled, "the turn ended before the command was started"))
	}
	defer env.Processes.Release()
	c, f := startCommand(ctx, env, command)
	if f != nil {
		return env.refuse(f)
	}
	c.supervise(ctx, limit)
	return c.result()
}
