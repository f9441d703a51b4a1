package mention

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"agent/internal/sonny/screen/edit"
)

// maxInline bounds a file that @path! puts into a message, in bytes.
const maxInline = 64 << 10

var inlineMark = regexp.MustCompile(`(^|\s)@([^\s!]+)!`)

// Inlined is a message's text, prompt, with the files that it wants in it, below it. Only what
// the person wrote counts, not what was pasted as a chip, and only files in the folder.
// It reads, and runs beside the loop.
func Inlined(folder string, draft edit.Draft, prompt string) (string, error) {
	var names []string
	for _, p := range draft.Parts {
		if p.Chip != nil {
			continue
		}
		for _, found := range inlineMark.FindAllStringSubmatch(p.Text, -1) {
			names = append(names, found[2])
		}
	}
	if len(names) == 0 {
		return prompt, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", err
	}
	defer root.Close()
	for _, name := range names {
		body, err := readText(root, name)
		if err != nil {
			return "", fmt.Errorf("@%s! cannot be put in: %w; without the ! it is named alone", name, err)
		}
		prompt = strings.Replace(prompt, "@"+name+"!", "@"+name, 1)
		prompt += "\n\n" + name + ":\n\n````\n" + strings.TrimRight(body, "\n") + "\n````"
	}
	return prompt, nil
}

func readText(root *os.Root, name string) (string, error) {
	info, err := root.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("it is no regular file")
	}
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxInline+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxInline {
		return "", fmt.Errorf("it is over %d KiB", maxInline>>10)
	}
	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return "", fmt.Errorf("it is no text")
	}
	return string(data), nil
}
