package tool

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strconv"
	"time"

	"agent/protocol"
)

var (
	//go:embed apply_patch.md
	patchText string
	//go:embed apply_patch.json
	patchParameters string
)

// patchTool changes several files by one patch (runtime.md 11, apply_patch).
var patchTool = &builtin[patchArgs]{
	name: "apply_patch", description: patchText, parameters: patchParameters, check: checkPatch, run: runPatch,
}

type patchArgs struct {
	Patch arg[string] `json:"patch"`
}

const maxPatch = 1 << 20 // bytes

func checkPatch(a *patchArgs) *Failure {
	if f := required("patch", a.Patch); f != nil {
		return f
	}
	if n := len(a.Patch.value); n > maxPatch {
		return failuref(protocol.ToolInputLimit, "patch is %d bytes; at most %d are taken: make several patches of it", n, maxPatch)
	}
	_, f := parsePatch(a.Patch.value)
	return f
}

// runPatch locks all files that the patch names and that are there, plans the
// whole patch, and only then writes. The locks are taken in one order by all
// calls, so that two patches of the same files cannot wait for each other.
func runPatch(ctx context.Context, env *Env, a *patchArgs) Result {
	sections, f := parsePatch(a.Patch.value)
	if f != nil {
		return env.refuse(f)
	}
	const what = "the patch"
	for {
		ids, err := beside(ctx, fileWork, func() []fileID { return env.patchFiles(sections) })
		if err != nil {
			return env.refuse(leftFailure(what, err))
		}
		release, err := fileLocks.takeAll(ctx, ids)
		if err != nil {
			return env.refuse(leftFailure(what, err))
		}
		c, err := beside(ctx, fileWork, func() changed {
			defer release() // when the work ends, which may be after the call
			if !slices.Equal(env.patchFiles(sections), ids) {
				return changed{moved: true}
			}
			return changed{result: env.applyPatch(ctx, sections)}
		})
		switch {
		case err != nil:
			if !errors.As(err, new(leftBehind)) {
				release()
			}
			return env.refuse(leftFailure(what, err))
		case !c.moved:
			return c.result
		}
	}
}

// applyPatch plans the patch, then writes it, under the locks.
func (e *Env) applyPatch(ctx context.Context, sections []*section) Result {
	if e.Confinement != nil {
		paths, f := e.targets(sections)
		if f == nil {
			f = e.inside(paths...)
		}
		if f != nil {
			return e.refuse(f)
		}
	}
	steps, f := e.planWithin(ctx, maxPlanTime, sections)
	if f != nil {
		return e.refuse(f)
	}
	return e.writePatch(ctx, sections, steps)
}

// maxPlanTime bounds the search for a patch's places. Each hunk may cost a walk
// through the whole file, so that a patch within maxPatch could take days.
const maxPlanTime = 30 * time.Second

// errPlanTime is the cause of a plan's end when its time is over.
var errPlanTime = errors.New("the patch takes too long to plan")

func (e *Env) planWithin(ctx context.Context, limit time.Duration, sections []*section) ([]*step, *Failure) {
	within, cancel := context.WithTimeoutCause(ctx, limit, errPlanTime)
	defer cancel()
	steps, f := e.planPatch(within, sections)
	if f != nil && errors.Is(context.Cause(within), errPlanTime) {
		return nil, failuref(protocol.ToolInputLimit,
			"the places of the patch were not found within %v, nothing was written: make several patches of it, with context as it stands in the files", limit)
	}
	return steps, f
}

// patchFiles names the files that a patch touches and that are there, in the
// order in which they are locked. What is wrong with a path is found later,
// under the locks.
func (e *Env) patchFiles(sections []*section) []fileID {
	var ids []fileID
	for _, s := range sections {
		for _, given := range s.paths() {
			if id, ok := e.find(given).id(); ok {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, fileID.compare)
	return slices.Compact(ids)
}

func (a fileID) compare(b fileID) int {
	if a.device != b.device {
		if a.device < b.device {
			return -1
		}
		return 1
	}
	switch {
	case a.inode < b.inode:
		return -1
	case a.inode > b.inode:
		return 1
	}
	return 0
}

// takeAll takes the locks of files, which are sorted and different, or none of
// them and the cause of ctx's end.
func (l *locks) takeAll(ctx context.Context, ids []fileID) (release func(), err error) {
	var releases []func()
	release = func() {
		for _, r := range releases {
			r()
		}
	}
	for _, id := range ids {
		r, err := l.take(ctx, id)
		if err != nil {
			release()
			return nil, err
		}
		releases = append(releases, r)
	}
	return release, nil
}

// patchResult is what the model is told of sections that were applied.
func (e *Env) patchResult(sections []*section) Result {
	b := []byte(`{"applied":[`)
	for i, s := range sections {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(append(b, `{"path":`...), string(e.Redact.Bytes([]byte(s.where()))))
		b = appendQuoted(append(b, `,"action":`...), s.action)
		b = strconv.AppendInt(append(b, `,"added":`...), int64(s.added), 10)
		b = strconv.AppendInt(append(b, `,"removed":`...), int64(s.removed), 10)
		b = append(b, '}')
	}
	return Result{Output: string(append(b, `]}`...))}
}
