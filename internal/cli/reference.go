package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// referenceVerb writes what help knows as documentation: docs/CLI.md and the
// man pages. It is hidden: those who build the command call it.
var referenceVerb = verb{
	name: "reference", operands: "markdown|man [DIR]", most: 2, words: []string{"markdown", "man"}, hidden: true,
	short: "documentation of every verb: markdown on standard output, or man pages into a folder",
	declare: func(a *app, _ *table) func(context.Context, []string) error {
		return func(_ context.Context, operands []string) error {
			switch {
			case len(operands) == 1 && operands[0] == "markdown":
				return a.write([]byte(a.markdown()))
			case len(operands) == 2 && operands[0] == "man":
				return a.manPages(operands[1])
			}
			return usagef("reference needs markdown, or man and a folder")
		}
	},
}

// referenceText is what the flags of single verbs do not say. It is written in
// the little Markdown that roff.text reads.
//
//go:embed reference.md
var referenceText string

// entry is what the documentation says of one verb.
type entry struct {
	verb  verb
	table *table
}

func (a *app) entries() []entry {
	var all []entry
	for _, v := range a.verbs {
		if !v.hidden {
			all = append(all, entry{v, a.tables[v.name]})
		}
	}
	return all
}

// usage is the line above a verb's help.
func (e entry) usage() string {
	return strings.TrimSpace("agent " + e.verb.name + " [FLAGS] " + e.verb.operands)
}

// text is what the verb does, as one or more paragraphs without line breaks.
func (e entry) text() []string {
	long := e.verb.long
	if long == "" {
		long = strings.ToUpper(e.verb.short[:1]) + e.verb.short[1:] + "."
	}
	paragraphs := strings.Split(long, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return paragraphs
}

// head is a flag as one types it, and full what it means with its other names.
func (f *flag) head() string { return strings.TrimSpace("--" + f.name + " " + f.hint) }

func (f *flag) full() string {
	if len(f.aliases) == 0 {
		return f.usage
	}
	return f.usage + "; also --" + strings.Join(f.aliases, ", --")
}

// in are the flags of one group.
func (t *table) in(g group) []*flag {
	var flags []*flag
	for _, f := range t.inOrder {
		if f.group == g {
			flags = append(flags, f)
		}
	}
	return flags
}

// groups are the headings under which flags are listed.
var groups = []struct {
	group group
	title string
}{{ofVerb, "Flags"}, {ofNewBot, "A new bot's settings"}, {ofDaemon, "Options of a daemon that is started"}}

const markdownHead = "# The command, verb by verb\n\n" +
	"Every verb and flag of `agent`, as `agent VERB --help` prints them. This page is made from the command itself: after a change, `go generate ./docs`. " +
	"[QUICKSTART.md](QUICKSTART.md) and [RUN.md](RUN.md) show it at work; [TROUBLESHOOTING.md](TROUBLESHOOTING.md) has the error codes. " +
	"`make install` puts the same beside the program as man pages: `man agent`, `man agent-run`.\n\n"

// markdown is docs/CLI.md. Flags that many verbs share are listed once.
func (a *app) markdown() string {
	var b strings.Builder
	b.WriteString(markdownHead)
	b.WriteString(strings.ReplaceAll("\n"+referenceText, "\n# ", "\n## ")[1:])
	b.WriteString("\n## Verbs\n\n| Verb | Does |\n| --- | --- |\n")
	all := a.entries()
	for _, e := range all {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", e.verb.name, e.verb.name, markdownText(e.verb.short))
	}
	shared := []*sharedFlags{
		{title: "Flags of every verb", text: "Of all but `serve`, `completion` and `help`, which list their own.", flags: a.tables[lsVerb.name].in(ofVerb)},
		{title: groups[2].title, text: "They count when the command starts a daemon. A daemon that runs is compared with those on the line, and what differs is refused with `daemon_configuration_mismatch`.", flags: a.tables[runVerb.name].in(ofDaemon)},
	}
	for _, s := range shared {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", s.title, s.text)
		for _, f := range s.flags {
			b.WriteString(markdownFlag(f))
		}
	}
	for _, e := range all {
		e.markdown(&b, shared)
	}
	return b.String()
}

// sharedFlags are described once, under a heading of their own.
type sharedFlags struct {
	title, text string
	flags       []*flag
}

// of tells which of the flags a verb has: a link to all of them, with those
// it lacks, or "".
func (s *sharedFlags) of(t *table) string {
	var missing []string
	for _, f := range s.flags {
		if !s.has(t.flags[f.name]) {
			missing = append(missing, "`--"+f.name+"`")
		}
	}
	link := "[" + s.title + "](#" + strings.ReplaceAll(strings.ToLower(s.title), " ", "-") + ")"
	switch len(missing) {
	case len(s.flags):
		return ""
	case 0:
		return link
	}
	return link + " without " + strings.Join(missing, ", ")
}

// has says that a verb's flag is the shared one, word for word.
func (s *sharedFlags) has(f *flag) bool {
	return f != nil && slices.ContainsFunc(s.flags, func(of *flag) bool { return markdownFlag(of) == markdownFlag(f) })
}

func (e entry) markdown(b *strings.Builder, shared []*sharedFlags) {
	fmt.Fprintf(b, "\n## %s\n\n```text\n%s\n```\n", e.verb.name, e.usage())
	for _, p := range e.text() {
		b.WriteString("\n" + markdownText(p) + "\n")
	}
	for _, g := range groups {
		var own strings.Builder
		for _, f := range e.table.in(g.group) {
			if !slices.ContainsFunc(shared, func(s *sharedFlags) bool { return s.has(f) }) {
				own.WriteString(markdownFlag(f))
			}
		}
		if own.Len() > 0 {
			fmt.Fprintf(b, "\n%s:\n\n%s", g.title, own.String())
		}
	}
	var elsewhere []string
	for _, s := range shared {
		if link := s.of(e.table); link != "" {
			elsewhere = append(elsewhere, link)
		}
	}
	if len(elsewhere) > 0 {
		fmt.Fprintf(b, "\nAlso: %s.\n", strings.Join(elsewhere, "; "))
	}
}

func markdownFlag(f *flag) string { return "- `" + f.head() + "`: " + markdownText(f.full()) + "\n" }

// literal is what reads as something to type.
var literal = regexp.MustCompile(`--[a-z][a-z-]*|~/\.[a-z./]*[a-z]|\bAGENT_[A-Z_]*[A-Z*]|\*\.rules|\{".*?\}|/tmp\b|\$TMPDIR|NAME\[=[A-Z_,[\]]*`)

func markdownText(s string) string { return literal.ReplaceAllString(s, "`$0`") }

// manPages writes agent.1 and one page for each verb into dir.
func (a *app) manPages(dir string) error {
	all := a.entries()
	pages := map[string]string{"agent": a.mainPage(all)}
	for _, e := range all {
		pages["agent-"+e.verb.name] = e.page()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range pages {
		// What is there is replaced, not written into: it may be a link.
		path := filepath.Join(dir, name+".1")
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) mainPage(all []entry) string {
	r := newPage("agent", "run bots that a model drives")
	r.section("SYNOPSIS")
	r.line(`\fBagent\fR \fIVERB\fR [\fIFLAGS\fR] [\fIOPERANDS\fR]`)
	r.line(".br")
	r.line(`\fBagent \-\-version\fR`)
	r.section("DESCRIPTION")
	r.paragraph("Runs bots that a model drives, over one store, through a daemon that it starts when one is needed.")
	r.section("VERBS")
	for _, e := range all {
		r.term("agent-"+e.verb.name+"(1)", e.verb.short)
	}
	r.text(referenceText)
	return r.b.String()
}

func (e entry) page() string {
	r := newPage("agent-"+e.verb.name, e.verb.short)
	r.section("SYNOPSIS")
	r.line(`\fB` + roff("agent "+e.verb.name) + `\fR` + roff(strings.TrimPrefix(e.usage(), "agent "+e.verb.name)))
	r.section("DESCRIPTION")
	for _, p := range e.text() {
		r.paragraph(p)
	}
	for _, g := range groups {
		flags := e.table.in(g.group)
		if len(flags) == 0 {
			continue
		}
		r.section(strings.ToUpper(g.title))
		for _, f := range flags {
			r.term(f.head(), f.full())
		}
	}
	r.section("SEE ALSO")
	r.line(`\fBagent\fR(1), which has the exit status, the environment and what is common to all verbs`)
	return r.b.String()
}
