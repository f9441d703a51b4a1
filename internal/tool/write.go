package tool

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"

	"agent/protocol"
)

var (
	//go:embed write.md
	writeText string
	//go:embed write.json
	writeParameters string
)

// writeTool writes whole files (runtime.md 11, write).
var writeTool = &builtin[writeArgs]{
	name: "write", description: writeText, parameters: writeParameters, check: checkWrite, run: runWrite,
}

type writeArgs struct {
	Path    arg[string] `json:"path"`
	Content arg[string] `json:"content"`
}

const maxWrite = 1 << 20 // bytes

func checkWrite(a *writeArgs) *Failure {
	if f := first(checkPath(a.Path), required("content", a.Content)); f != nil {
		return f
	}
	if n := len(a.Content.value); n > maxWrite {
		return failuref(protocol.ToolInputLimit, "content is %d bytes; at most %d are written at once", n, maxWrite)
	}
	return nil
}

func runWrite(ctx context.Context, env *Env, a *writeArgs) Result {
	return env.change(ctx, a.Path.value, func(ctx context.Context, t *target) (Result, error) {
		content := []byte(a.Content.value)
		if f := env.inside(t.path); f != nil {
			return Result{}, f
		}
		if t.info == nil {
			if err := env.makeFolders(filepath.Dir(t.path)); err != nil {
				return Result{}, err
			}
		} else {
			f := env.unchanged(ctx, t)
			if f != nil {
				return Result{}, f
			}
			if content, f = keptEncoding(*t, t.was, content); f != nil {
				return Result{}, f
			}
		}
		seen, err := env.put(ctx, *t, content)
		if err != nil {
			return Result{}, err
		}
		r := env.text("Wrote %d bytes to %s.", len(content), t.given)
		r.Seen = []SeenFile{seen}
		return r, nil
	})
}

// makeFolders makes what is missing of a folder. For a confined call the helper
// does that, as it writes the file.
func (e *Env) makeFolders(path string) error {
	if e.Confinement != nil {
		return nil
	}
	return os.MkdirAll(path, 0o777)
}
