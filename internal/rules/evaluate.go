package rules

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Bounds of an evaluation (sandbox.md 8.2).
const (
	maxSteps = 1_000_000
	maxTime  = 2 * time.Second
	// maxGrowth is by how much the heap may grow while a set is evaluated; the
	// language has no bound of its own.
	maxGrowth = 32 << 20
	maxRange  = 100_000 // elements of a range()
)

// Parse evaluates the files, in the order they are given, into a set, and checks
// the rules' own examples. Errors are *Error. It takes at most two seconds and
// about 32 MiB; callers run it apart from what must not wait.
func Parse(files []File) (*Set, error) {
	if err := checkSize(files); err != nil {
		return nil, err
	}
	e := &evaluation{set: &Set{hosts: map[string][]string{}}, steps: maxSteps}
	stop := e.watch()
	defer stop()
	for _, f := range files {
		if err := e.file(f); err != nil {
			return nil, err
		}
	}
	if err := e.checkExamples(); err != nil {
		return nil, err
	}
	return e.set, nil
}

func checkSize(files []File) error {
	if len(files) > MaxFiles {
		return &Error{Limit: true, Reason: fmt.Sprintf("%d rule files of at most %d", len(files), MaxFiles)}
	}
	size := 0
	for _, f := range files {
		size += len(f.Text)
	}
	if size > MaxBytes {
		return &Error{Limit: true, Reason: fmt.Sprintf("the rule files have %d bytes of at most %d", size, MaxBytes)}
	}
	return nil
}

// examples are a rule's match and not_match, each as words.
type examples struct {
	rules           []int // of the set: one for each alternative of the first word
	match, notMatch [][]string
	file            string
	line            int
}

// evaluation is one Parse.
type evaluation struct {
	set      *Set
	examples []examples
	steps    uint64 // left of all files'

	threads chan *starlark.Thread // of one: who evaluates now, for watch
}

// watch ends an evaluation that takes too long or too much memory. The language
// cannot: it counts steps, and one step can take either.
func (e *evaluation) watch() (stop func()) {
	e.threads = make(chan *starlark.Thread, 1)
	e.threads <- nil
	done := make(chan struct{})
	go func() {
		began, heap := time.Now(), heapBytes()
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			why := ""
			if time.Since(began) > maxTime {
				why = fmt.Sprintf("the rules take longer than %s to evaluate", maxTime)
			} else if heapBytes() > heap+maxGrowth {
				why = fmt.Sprintf("the rules take more than %d MiB to evaluate", maxGrowth>>20)
			}
			if why == "" {
				continue
			}
			t := <-e.threads
			if t != nil {
				t.Cancel(why)
			}
			e.threads <- t
		}
	}()
	return func() { close(done) }
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// file evaluates one file.
func (e *evaluation) file(f File) error {
	options := &syntax.FileOptions{TopLevelControl: true, GlobalReassign: true}
	tree, err := options.Parse(f.Name, f.Text, 0)
	if err != nil {
		return fileError(f.Name, err)
	}
	if err := checkTree(f.Name, tree); err != nil {
		return err
	}
	program, err := starlark.FileProgram(tree, func(name string) bool { _, ok := e.builtins(f.Name)[name]; return ok })
	if err != nil {
		return fileError(f.Name, err)
	}
	thread := &starlark.Thread{Name: f.Name, Print: func(*starlark.Thread, string) {}}
	thread.SetMaxExecutionSteps(e.steps)
	<-e.threads
	e.threads <- thread
	_, err = program.Init(thread, e.builtins(f.Name))
	<-e.threads
	e.threads <- nil
	if err != nil {
		return fileError(f.Name, err)
	}
	e.steps -= min(thread.ExecutionSteps(), e.steps-1)
	return nil
}

// checkTree refuses repetition by *: "a"*1000000000 is one step.
func checkTree(name string, tree *syntax.File) (err error) {
	syntax.Walk(tree, func(n syntax.Node) bool {
		var at syntax.Position
		switch x := n.(type) {
		case *syntax.BinaryExpr:
			if x.Op != syntax.STAR {
				return true
			}
			at = x.OpPos
		case *syntax.AssignStmt:
			if x.Op != syntax.STAR_EQ {
				return true
			}
			at = x.OpPos
		default:
			return true
		}
		if err == nil {
			err = &Error{File: name, Line: int(at.Line), Reason: "the operator * is not available in rules"}
		}
		return false
	})
	return err
}

// fileError gives an error of the language its file and line.
func fileError(name string, err error) *Error {
	e := &Error{File: name, Reason: err.Error()}
	var (
		own      *Error
		parsing  syntax.Error
		resolved resolve.ErrorList
		run      *starlark.EvalError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &parsing):
		e.Line, e.Reason = int(parsing.Pos.Line), parsing.Msg
	case errors.As(err, &resolved) && len(resolved) > 0:
		e.Line, e.Reason = int(resolved[0].Pos.Line), resolved[0].Msg
	case errors.As(err, &run):
		e.Reason = run.Msg
		for i := range run.CallStack {
			if pos := run.CallStack.At(i).Pos; pos.Filename() == name && pos.Line > 0 {
				e.Line = int(pos.Line)
				break
			}
		}
	}
	return e
}

func (e *evaluation) builtins(file string) starlark.StringDict {
	builtin := func(name string, f func(*starlark.Thread, starlark.Tuple, []starlark.Tuple) error) *starlark.Builtin {
		return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, named []starlark.Tuple) (starlark.Value, error) {
			return starlark.None, f(t, args, named)
		})
	}
	at := func(t *starlark.Thread) (string, int) { return file, callerLine(t) }
	return starlark.StringDict{
		"prefix_rule": builtin("prefix_rule", func(t *starlark.Thread, args starlark.Tuple, named []starlark.Tuple) error {
			name, line := at(t)
			return e.prefixRule(name, line, args, named)
		}),
		"host_executable": builtin("host_executable", func(_ *starlark.Thread, args starlark.Tuple, named []starlark.Tuple) error {
			return e.hostExecutable(args, named)
		}),
		"network_rule": builtin("network_rule", func(_ *starlark.Thread, args starlark.Tuple, named []starlark.Tuple) error {
			return networkRule(args, named)
		}),
		"range": starlark.NewBuiltin("range", boundedRange),
	}
}

func callerLine(t *starlark.Thread) int {
	if t.CallStackDepth() < 2 {
		return 0
	}
	return int(t.CallFrame(1).Pos.Line)
}

// boundedRange is range() with a bound: what takes all of an iterable in one
// step cannot be interrupted.
func boundedRange(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, named []starlark.Tuple) (starlark.Value, error) {
	v, err := starlark.Call(t, starlark.Universe["range"], args, named)
	if err != nil {
		return nil, err
	}
	if n := starlark.Len(v); n > maxRange {
		return nil, fmt.Errorf("range of %d elements; at most %d are available in rules", n, maxRange)
	}
	return v, nil
}

func (e *evaluation) prefixRule(file string, line int, args starlark.Tuple, named []starlark.Tuple) error {
	var (
		pattern, match, notMatch *starlark.List
		decision                                = "allow"
		justification, reviewer  starlark.Value = starlark.None, starlark.None
	)
	err := starlark.UnpackArgs("prefix_rule", args, named, "pattern", &pattern, "decision?", &decision,
		"match?", &match, "not_match?", &notMatch, "justification?", &justification, "reviewer?", &reviewer)
	if err != nil {
		return err
	}
	r := Rule{File: file, Line: line}
	if r.Decision, err = decisionOf(decision); err != nil {
		return err
	}
	if r.Justification, err = justificationOf(justification); err != nil {
		return err
	}
	if err := checkReviewer(reviewer); err != nil {
		return err
	}
	if r.Pattern, err = patternOf(pattern); err != nil {
		return err
	}
	ex := examples{file: file, line: line}
	if ex.match, err = examplesOf("match", match); err != nil {
		return err
	}
	if ex.notMatch, err = examplesOf("not_match", notMatch); err != nil {
		return err
	}
	for _, first := range r.Pattern[0] {
		if len(e.set.rules) == MaxRules {
			return &Error{File: file, Line: line, Limit: true, Reason: fmt.Sprintf("more than %d rules", MaxRules)}
		}
		one := r
		one.Pattern = append([][]string{{first}}, r.Pattern[1:]...)
		ex.rules = append(ex.rules, len(e.set.rules))
		e.set.rules = append(e.set.rules, one)
	}
	e.examples = append(e.examples, ex)
	return nil
}

func decisionOf(word string) (Decision, error) {
	for _, d := range []Decision{Allow, Prompt, Forbidden} {
		if d.String() == word {
			return d, nil
		}
	}
	return None, fmt.Errorf("decision %q is not allow, prompt or forbidden", word)
}

func justificationOf(v starlark.Value) (string, error) {
	if v == starlark.None {
		return "", nil
	}
	text, ok := starlark.AsString(v)
	switch {
	case !ok:
		return "", fmt.Errorf("justification is a %s, not a string", v.Type())
	case strings.TrimSpace(text) == "":
		return "", errors.New("justification is blank; leave it out or say why")
	case len(text) > MaxJustification:
		return "", fmt.Errorf("justification has %d bytes of at most %d", len(text), MaxJustification)
	}
	return text, nil
}

// checkReviewer accepts what other programs' rules say about who reviews; it has
// no effect here.
func checkReviewer(v starlark.Value) error {
	if v == starlark.None {
		return nil
	}
	if text, _ := starlark.AsString(v); text != "user" && text != "auto_review" {
		return fmt.Errorf("reviewer %s is not \"user\" or \"auto_review\"", v)
	}
	return nil
}

func patternOf(list *starlark.List) ([][]string, error) {
	if list == nil || list.Len() == 0 {
		return nil, errors.New("pattern is empty")
	}
	pattern := make([][]string, list.Len())
	for i := range pattern {
		switch v := list.Index(i).(type) {
		case starlark.String:
			pattern[i] = []string{string(v)}
		case *starlark.List:
			words, err := stringsOf(v)
			if err != nil {
				return nil, fmt.Errorf("pattern element %d: %w", i+1, err)
			}
			if len(words) == 0 {
				return nil, fmt.Errorf("pattern element %d has no alternative", i+1)
			}
			pattern[i] = words
		default:
			return nil, fmt.Errorf("pattern element %d is a %s, not a string or a list of strings", i+1, v.Type())
		}
	}
	if slices.Contains(pattern[0], "") {
		return nil, errors.New("pattern begins with an empty word")
	}
	return pattern, nil
}

func stringsOf(list *starlark.List) ([]string, error) {
	words := make([]string, list.Len())
	for i := range words {
		text, ok := starlark.AsString(list.Index(i))
		if !ok {
			return nil, fmt.Errorf("a %s is not a string", list.Index(i).Type())
		}
		words[i] = text
	}
	return words, nil
}

func examplesOf(what string, list *starlark.List) (found [][]string, err error) {
	if list == nil {
		return nil, nil
	}
	for i := range list.Len() {
		var words []string
		switch v := list.Index(i).(type) {
		case starlark.String:
			words, err = splitWords(string(v))
		case *starlark.List:
			words, err = stringsOf(v)
		default:
			err = fmt.Errorf("a %s is neither a string nor a list of words", v.Type())
		}
		if err == nil && len(words) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			return nil, fmt.Errorf("%s example %d: %w", what, i+1, err)
		}
		found = append(found, words)
	}
	return found, nil
}

// splitWords splits by POSIX quoting and nothing else.
func splitWords(text string) (words []string, err error) {
	var word strings.Builder
	open, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case quote == '\'':
			if b == '\'' {
				quote = 0
			} else {
				word.WriteByte(b)
			}
		case b == '\\':
			if i++; i == len(text) {
				return nil, errors.New("it ends in a backslash")
			}
			if quote == '"' && strings.IndexByte("$`\"\\", text[i]) < 0 {
				word.WriteByte('\\')
			}
			word.WriteByte(text[i])
			open = true
		case quote == '"':
			if b == '"' {
				quote = 0
			} else {
				word.WriteByte(b)
			}
		case b == '\'' || b == '"':
			quote, open = b, true
		case b == ' ' || b == '\t' || b == '\n':
			if open {
				words = append(words, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteByte(b)
			open = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

func (e *evaluation) hostExecutable(args starlark.Tuple, named []starlark.Tuple) error {
	var name string
	var list *starlark.List
	if err := starlark.UnpackArgs("host_executable", args, named, "name", &name, "paths", &list); err != nil {
		return err
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\") {
		return fmt.Errorf("name %q is not a bare program name", name)
	}
	paths, err := stringsOf(list)
	if err != nil {
		return fmt.Errorf("paths: %w", err)
	}
	for _, p := range paths {
		if !filepath.IsAbs(p) || path.Base(p) != name {
			return fmt.Errorf("path %q is not absolute or does not end in %s", p, name)
		}
	}
	e.set.hosts[name] = paths
	return nil
}

// networkRule accepts what has no effect: there is no network proxy to tell.
func networkRule(args starlark.Tuple, named []starlark.Tuple) error {
	var host, protocol, decision string
	var justification starlark.Value = starlark.None
	err := starlark.UnpackArgs("network_rule", args, named,
		"host", &host, "protocol", &protocol, "decision", &decision, "justification?", &justification)
	if err != nil {
		return err
	}
	_, err = justificationOf(justification)
	return err
}

// checkExamples holds each rule against its own examples, when all files are
// read: a host_executable may come later.
func (e *evaluation) checkExamples() error {
	for _, ex := range e.examples {
		matched := func(words []string) bool {
			return slices.ContainsFunc(ex.rules, func(i int) bool { return e.set.matches(&e.set.rules[i], words) })
		}
		for _, words := range ex.match {
			if !matched(words) {
				return &Error{File: ex.file, Line: ex.line, Reason: fmt.Sprintf("the rule does not match its example %q", strings.Join(words, " "))}
			}
		}
		for _, words := range ex.notMatch {
			if matched(words) {
				return &Error{File: ex.file, Line: ex.line, Reason: fmt.Sprintf("the rule matches %q, which it says it does not", strings.Join(words, " "))}
			}
		}
	}
	return nil
}
