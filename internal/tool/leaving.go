package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"agent/internal/sandbox"
)

// Confined reports whether a tool's calls are held by the bot's sandbox: what
// starts commands, feeds them, or changes files (sandbox.md 1).
func Confined(name string) bool {
	switch name {
	case "shell", "write_stdin", "write", "edit", "apply_patch":
		return true
	}
	return false
}

// Justification is what the model says for a checked shell call, "" for nothing.
func Justification(args json.RawMessage) string {
	var a shellArgs
	if decode(args, &a) != nil {
		return ""
	}
	return a.Justification.value
}

// InputHandle is the command that a checked write_stdin call gives input to, ""
// when it gives none.
func InputHandle(args json.RawMessage) string {
	var a writeStdinArgs
	if decode(args, &a) != nil || a.Chars.value == "" {
		return ""
	}
	return a.Handle.value
}

// Changes reports whether a tool changes the files that its call names.
func Changes(name string) bool { return name == "write" || name == "edit" || name == "apply_patch" }

// Targets are the real paths that a checked call of write, edit or apply_patch
// would change now, each once, and those of them that leave the call's sandbox.
// What is wrong with a path is a *Failure. It looks at the file system, and
// returns when ctx ends.
func (e *Env) Targets(ctx context.Context, name string, args json.RawMessage) (paths, outside []string, err error) {
	type found struct {
		paths, outside []string
		f              *Failure
	}
	got, err := beside(ctx, fileWork, func() (r found) {
		if r.paths, r.f = e.changes(name, args); r.f == nil && e.Confinement != nil {
			r.outside, r.f = e.leaving(r.paths)
		}
		return r
	})
	switch {
	case err != nil:
		return nil, nil, leftFailure(name, err)
	case got.f != nil:
		return nil, nil, got.f
	}
	return got.paths, got.outside, nil
}

// Folder names the call's workspace as it is there now, "" for none. It returns
// when ctx ends.
func (e *Env) Folder(ctx context.Context) string {
	name, err := beside(ctx, fileWork, func() string {
		real, err := sandbox.RealPath(e.Workspace)
		if err != nil {
			return ""
		}
		info, err := os.Stat(real)
		if err != nil {
			return ""
		}
		id, _ := idOf(info)
		return fmt.Sprintf("%s#%d", real, id.inode)
	})
	if err != nil {
		return ""
	}
	return name
}

// changes are the real paths of a call's files, sorted.
func (e *Env) changes(name string, args json.RawMessage) ([]string, *Failure) {
	var one arg[string]
	switch name {
	case "write":
		var a writeArgs
		if decode(args, &a) != nil {
			return nil, invalidf("the arguments cannot be read")
		}
		one = a.Path
	case "edit":
		var a editArgs
		if decode(args, &a) != nil {
			return nil, invalidf("the arguments cannot be read")
		}
		one = a.Path
	default:
		var a patchArgs
		if decode(args, &a) != nil {
			return nil, invalidf("the arguments cannot be read")
		}
		sections, f := parsePatch(a.Patch.value)
		if f != nil {
			return nil, f
		}
		paths, f := e.targets(sections)
		slices.Sort(paths)
		return slices.Compact(paths), f
	}
	t, f := e.target(one.value)
	return []string{t.path}, f
}

// leaving are those of some real paths that lie outside what the bot may write.
func (e *Env) leaving(paths []string) (out []string, f *Failure) {
	plan, err := e.Confinement.plan(sandbox.Call{Cwd: e.Workspace})
	if err != nil {
		return nil, confineFailure(err)
	}
	for _, path := range paths {
		if !plan.Inside(path) {
			out = append(out, path)
		}
	}
	return out, nil
}

// Script is what a checked shell call runs, and whether it asks to run outside
// the sandbox.
func Script(args json.RawMessage) (script string, escalated bool) {
	var a shellArgs
	if decode(args, &a) != nil {
		return "", false
	}
	return a.Command.value, a.Sandbox.or("use_default") == "require_escalated"
}
