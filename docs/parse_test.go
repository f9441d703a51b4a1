package docs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A block is one fenced example of a guide.
//
//   - ```console is a session: "$ " begins a command, "> " goes on with it, and
//     the lines up to the next command are what it must print; "..." stands for
//     any text in a line, and alone on a line for any lines. Each command must
//     succeed.
//   - ```sh is a script that must succeed; what it prints is free.
//   - Any fence with file=NAME after its language is written to that file.
//
// Other fences are only shown.
type block struct {
	file  string
	text  string
	steps []step
}

type step struct {
	line    int // of the guide
	command string
	want    []string
	checked bool
}

func parse(text string) ([]block, error) {
	var blocks []block
	all := strings.Split(text, "\n")
	for i := 0; i < len(all); i++ {
		info, ok := strings.CutPrefix(all[i], "```")
		if !ok {
			continue
		}
		end := slices.Index(all[i+1:], "```")
		if end < 0 {
			return nil, fmt.Errorf("line %d: a fence without an end", i+1)
		}
		b, err := parseBlock(info, all[i+1:i+1+end], i+2)
		if err != nil {
			return nil, err
		}
		if b.file != "" || b.steps != nil {
			blocks = append(blocks, b)
		}
		i += end + 1
	}
	return blocks, nil
}

func parseBlock(info string, body []string, line int) (block, error) {
	b := block{text: strings.Join(body, "\n") + "\n"}
	words := strings.Fields(info)
	if len(words) == 0 {
		return b, nil
	}
	for _, word := range words[1:] {
		if name, ok := strings.CutPrefix(word, "file="); ok {
			b.file = name
		}
	}
	switch words[0] {
	case "sh":
		if b.file == "" {
			b.steps = []step{{line: line, command: "set -e; " + b.text + "set +e"}}
		}
	case "console":
		return parseSession(b, body, line)
	case "bash", "shell", "zsh":
		return b, fmt.Errorf("line %d: examples are marked console or sh, and those are run", line-1)
	}
	return b, nil
}

func parseSession(b block, body []string, line int) (block, error) {
	for i, text := range body {
		if command, ok := strings.CutPrefix(text, "$ "); ok {
			b.steps = append(b.steps, step{line: line + i, command: command, checked: true})
			continue
		}
		if len(b.steps) == 0 {
			return b, fmt.Errorf("line %d: a session begins with a command", line+i)
		}
		last := &b.steps[len(b.steps)-1]
		if more, ok := strings.CutPrefix(text, "> "); ok && last.want == nil {
			last.command += "\n" + more
			continue
		}
		last.want = append(last.want, text)
	}
	return b, nil
}

// matches compares lines by the page's wildcards.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		for skip := 0; skip <= len(got); skip++ {
			if matches(want[1:], got[skip:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && lineMatches(want[0], got[0]) && matches(want[1:], got[1:])
}

func lineMatches(want, got string) bool {
	parts := strings.Split(want, "...")
	if len(parts) == 1 {
		return want == got
	}
	rest, ok := strings.CutPrefix(got, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

func TestParse(t *testing.T) {
	t.Parallel()
	blocks, err := parse("# A\n```console\n$ cat <<X\n> hi\n> X\nhi\n$ true\n```\ntext\n```json file=a.json\n{}\n```\n```sh\nls\n```\n```text\n$ no\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 3 {
		t.Fatalf("%d blocks, want 3: %+v", len(blocks), blocks)
	}
	session := blocks[0].steps
	if len(session) != 2 || session[0].command != "cat <<X\nhi\nX" || session[0].line != 3 ||
		!slices.Equal(session[0].want, []string{"hi"}) || session[1].want != nil || !session[1].checked {
		t.Errorf("the session is %+v", session)
	}
	if blocks[1].file != "a.json" || blocks[1].text != "{}\n" || blocks[1].steps != nil {
		t.Errorf("the file is %+v", blocks[1])
	}
	if len(blocks[2].steps) != 1 || blocks[2].steps[0].checked {
		t.Errorf("the script is %+v", blocks[2])
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"```console\n$ ls\n", "```console\nls\n```\n", "```bash\nls\n```\n"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name, want, got string
		ok              bool
	}{
		{"the same lines", "a\nb", "a\nb", true},
		{"another line", "a\nb", "a\nc", false},
		{"a line too many", "a", "a\nb", false},
		{"a line too few", "a\nb", "a", false},
		{"nothing printed, as said", "", "", true},
		{"something printed where nothing was said", "", "a", false},
		{"text left out in a line", `{"turn":...,"ok":true}`, `{"turn":7,"ok":true}`, true},
		{"the end of such a line differs", `{"turn":...,"ok":true}`, `{"turn":7,"ok":false}`, false},
		{"the middle of such a line is missing", "a...b...c", "a-c", false},
		{"lines left out", "a\n...\nd", "a\nb\nc\nd", true},
		{"no lines left out", "a\n...\nd", "a\nd", true},
		{"a line after those left out is missing", "...\nd", "a\nb", false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := matches(lines(row.want), lines(row.got)); got != row.ok {
				t.Errorf("%v, want %v", got, row.ok)
			}
		})
	}
}
