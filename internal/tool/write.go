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
	t, f := env.target(a.Path.value)
	if f != nil {
		return env.refuse(f)
	}
	content := []byte(a.Content.value)
	if t.info == nil {
		if err := os.MkdirAll(filepath.Dir(t.path), 0o777); err != nil {
			return env.refuse(fileFailure(protocol.IoError, t.given, err))
		}
	} else {
		old, f := env.unchanged(ctx, &t)
		if f != nil {
			return env.refuse(f)
		}
		if content, f = keptEncoding(t, old, content); f != nil {
			return env.refuse(f)
		}
	}
	seen, f := env.put(t, content)
	if f != nil {
		return env.refuse(f)
	}
	r := env.text("Wrote %d bytes to %s.", len(content), t.given)
	r.Seen = []SeenFile{seen}
	return r
}
