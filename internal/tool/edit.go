package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"agent/protocol"
)

var (
	//go:embed edit.md
	editText string
	//go:embed edit.json
	editParameters string
)

// editTool replaces exact text (runtime.md 11, edit).
var editTool = &builtin[editArgs]{
	name: "edit", description: editText, parameters: editParameters, check: checkEdit, run: runEdit,
}

type editArgs struct {
	Path       arg[string] `json:"path"`
	Old        arg[string] `json:"old"`
	New        arg[string] `json:"new"`
	ReplaceAll arg[bool]   `json:"replace_all"`
}

func checkEdit(a *editArgs) *Failure {
	if f := first(checkPath(a.Path), required("old", a.Old), required("new", a.New)); f != nil {
		return f
	}
	if a.Old.value == "" {
		return invalidf("old is empty; use write to make a file")
	}
	if n := len(a.New.value); n > maxWrite {
		return failuref(protocol.ToolInputLimit, "new is %d bytes; at most %d are taken", n, maxWrite)
	}
	return nil
}

func runEdit(ctx context.Context, env *Env, a *editArgs) Result {
	return env.change(ctx, a.Path.value, func(ctx context.Context, t *target) (Result, error) {
		if f := env.inside(t.path); f != nil {
			return Result{}, f
		}
		data, info, err := env.readWhole(t.path)
		if errors.Is(err, errStore) {
			err = errors.New("it belongs to the daemon's own store and is not edited")
		}
		if err != nil {
			return Result{}, fileFailure(protocol.FileUnreadable, t.given, err)
		}
		if f := checkUTF8(data); f != nil {
			return Result{}, fileFailure(protocol.FileNotUTF8, t.given, f)
		}
		t.info, t.was = info, data
		changed, count, f := env.replaceText(data, a.Old.value, a.New.value, a.ReplaceAll.value)
		if f != nil {
			return Result{}, fileFailure(protocol.EditTargetNotFound, t.given, f)
		}
		seen, err := env.put(ctx, *t, changed)
		if err != nil {
			return Result{}, err
		}
		places := "1 occurrence"
		if count != 1 {
			places = fmt.Sprint(count, " occurrences")
		}
		r := env.text("Replaced %s in %s.", places, t.given)
		r.Seen = []SeenFile{seen}
		return r, nil
	})
}
