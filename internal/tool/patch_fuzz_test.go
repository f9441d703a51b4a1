package tool

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParsePatch(f *testing.F) {
	for _, seed := range []string{
		envelope("*** Add File: a\n+x\n", "*** Delete File: b\n", update("c", "*** Move to: d\n@@ f\n a\n-b\n+c\n*** End of File\n")),
		envelope(update("a", "@@\n@@ x\n\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n")),
		strings.ReplaceAll(envelope(update("a", "@@\n+b\n")), lf, crlf), byteOrderMark + envelope("*** Delete File: a"), "*** Begin Patch\n*** End Patch", "\n", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sections, failure := parsePatch(text)
		if failure != nil {
			if failure.Code != "patch_invalid" && failure.Code != "invalid_path" || !strings.HasPrefix(failure.Detail, "line ") {
				t.Fatalf("%q: %v", text, failure)
			}
			return
		}
		for _, s := range sections {
			if s.path == "" || (s.action == actionMove) != (s.to != "") || s.action == actionUpdate && len(s.hunks) == 0 {
				t.Fatalf("%q: section %+v", text, s)
			}
			for _, h := range s.hunks {
				if len(h.lines) == 0 || len(h.old) > len(h.lines) {
					t.Fatalf("%q: hunk %+v", text, h)
				}
			}
		}
		again, failure := parsePatch(printPatch(sections))
		if failure != nil || printPatch(again) != printPatch(sections) {
			t.Fatalf("%q became %q: %v", text, printPatch(sections), failure)
		}
	})
}

// printPatch writes sections as a patch.
func printPatch(sections []*section) string {
	var b strings.Builder
	for _, s := range sections {
		switch s.action {
		case actionAdd:
			b.WriteString("*** Add File: " + s.path + "\n")
			for line := range strings.Lines(string(s.content)) {
				b.WriteString("+" + line)
			}
			if len(s.content) > 0 && s.content[len(s.content)-1] != '\n' || s.added > strings.Count(string(s.content), lf) {
				if !strings.HasSuffix(b.String(), lf) {
					b.WriteString(lf)
				} else {
					b.WriteString("+\n")
				}
				b.WriteString(noFinalLine + "\n")
			}
		case actionDelete:
			b.WriteString("*** Delete File: " + s.path + "\n")
		default:
			b.WriteString("*** Update File: " + s.path + "\n")
			if s.to != "" {
				b.WriteString("*** Move to: " + s.to + "\n")
			}
			for _, h := range s.hunks {
				b.WriteString(printHunk(h))
			}
		}
	}
	return envelope(b.String())
}

func printHunk(h *hunk) string {
	var b strings.Builder
	b.WriteString("@@\n")
	for _, a := range h.anchors {
		b.WriteString("@@ " + a + "\n")
	}
	lastOld := -1
	for i, l := range h.lines {
		if l.op != '+' {
			lastOld = i
		}
	}
	for i, l := range h.lines {
		b.WriteString(string(l.op) + l.text + "\n")
		last := i == len(h.lines)-1
		if h.oldBare && i == lastOld && l.op != ' ' || last && h.newBare {
			b.WriteString(noFinalLine + "\n")
		}
	}
	if h.atEnd && !h.oldBare && !h.newBare {
		b.WriteString(endOfFile + "\n")
	}
	return b.String()
}

// refLine is a line of the reference: what it says and how it ends.
type refLine struct{ text, ending string }

func refLines(body string) (lines []refLine) {
	for line := range strings.Lines(body) {
		switch {
		case strings.HasSuffix(line, crlf):
			lines = append(lines, refLine{line[:len(line)-2], crlf})
		case strings.HasSuffix(line, lf):
			lines = append(lines, refLine{line[:len(line)-1], lf})
		default:
			lines = append(lines, refLine{line, ""})
		}
	}
	return lines
}

// refLocate tries every place for a hunk's lines, one likeness after the other.
func refLocate(lines []refLine, from int, want []string, atEnd bool) int {
	for _, like := range []func(string) string{
		func(s string) string { return s },
		func(s string) string { return strings.TrimRight(s, " \t") },
		func(s string) string { return strings.Trim(s, " \t") },
	} {
	places:
		for at := from; at+len(want) <= len(lines); at++ {
			if atEnd && at+len(want) != len(lines) {
				continue
			}
			for i, text := range want {
				if like(lines[at+i].text) != like(text) {
					continue places
				}
			}
			return at
		}
	}
	return -1
}

// refApply is a plain way to apply hunks without anchors to a body without a
// mark: the texts that come out, and whether they end with a newline.
func refApply(body string, hunks []*hunk) (texts []string, final, ok bool) {
	lines := refLines(body)
	final = body == "" || strings.HasSuffix(body, lf)
	at := 0
	for _, h := range hunks {
		start := len(lines)
		if len(h.old) > 0 {
			start = refLocate(lines, at, h.old, h.atEnd)
		}
		if start < 0 {
			return nil, false, false
		}
		for ; at < start; at++ {
			texts = append(texts, lines[at].text)
		}
		for _, l := range h.lines {
			switch l.op {
			case ' ':
				texts = append(texts, lines[at].text)
				at++
			case '-':
				at++
			default:
				texts = append(texts, l.text)
			}
		}
		if h.newBare {
			final = false
		} else if h.oldBare {
			final = true
		}
	}
	for ; at < len(lines); at++ {
		texts = append(texts, lines[at].text)
	}
	return texts, final, true
}

func FuzzApplyHunks(f *testing.F) {
	for _, seed := range [][2]string{
		{"a\nb\nc\n", "@@\n a\n-b\n+x\n c\n"},
		{"a\r\nb\nc", "@@\n-a\n+1\n+2\n@@\n c\n+d\n"},
		{"a\na\nb", "@@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"", "@@\n+a\n"},
		{"x \n\ty\n", "@@\n x\n-y\n"},
		{"a\n\n\n", "@@\n\n-\n"},
		{"a", "@@\n+b\n*** End of File\n"},
		{"a\nb\n", "@@\n-a\n-b\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, body, hunks string) {
		sections, failure := parsePatch(envelope(update("f", hunks)))
		if failure != nil || len(sections) != 1 || !utf8.ValidString(body) || strings.HasPrefix(body, byteOrderMark) || strings.Contains(hunks, byteOrderMark) {
			return
		}
		for _, h := range sections[0].hunks {
			h.anchors = nil
			for _, l := range h.lines {
				if strings.HasSuffix(l.text, "\r") { // would make an ending of another kind
					return
				}
			}
		}
		texts, final, found := refApply(body, sections[0].hunks)
		out, failure := unmasked.applyHunks(t.Context(), "f", []byte(body), sections[0].hunks)
		if (failure == nil) != found {
			t.Fatalf("%q with %q: %v, the reference found it: %v", body, hunks, failure, found)
		}
		if !found {
			return
		}
		got := refLines(string(out))
		if len(got) != len(texts) && !(len(texts) == len(got)+1 && texts[len(got)] == "" && !final) {
			t.Fatalf("%q with %q gave %q, want the lines %q", body, hunks, out, texts)
		}
		for i, l := range got {
			if l.text != texts[i] || l.ending == "" && (i < len(got)-1 || final) {
				t.Fatalf("%q with %q gave %q, want the lines %q", body, hunks, out, texts)
			}
		}
		uniform := !strings.Contains(strings.ReplaceAll(body, crlf, ""), lf)
		if strings.Contains(body, crlf) && uniform && strings.Contains(strings.ReplaceAll(string(out), crlf, ""), lf) {
			t.Fatalf("%q with %q gave %q: a lone newline", body, hunks, out)
		}
		marked, failure := unmasked.applyHunks(t.Context(), "f", []byte(byteOrderMark+body), sections[0].hunks)
		if failure != nil || !bytes.Equal(marked, append([]byte(byteOrderMark), out...)) {
			t.Fatalf("%q with %q and a mark gave %q: %v", body, hunks, marked, failure)
		}
	})
}
