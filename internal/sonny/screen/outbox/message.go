package outbox

import (
	"slices"
	"strings"

	"agent/internal/sonny/screen/edit"
)

// Message is what goes out: the draft as it was written, which comes back where it is
// refused, and what is made of it.
type Message struct {
	draft    edit.Draft
	prompt   string
	pictures []string // paths
}

// Of is the message that a draft makes.
func Of(d edit.Draft) Message {
	prompt, pictures := d.Message()
	m := Message{draft: d, prompt: strings.TrimRight(prompt, "\n")}
	for _, p := range pictures {
		m.pictures = append(m.pictures, p.Path)
	}
	if strings.TrimSpace(m.prompt) == "" && len(pictures) > 0 {
		m.prompt = "(see the picture)"
	}
	return m
}

// Text is a message of words alone.
func Text(prompt string) Message {
	return Message{draft: edit.Text(prompt), prompt: prompt}
}

// Empty reports whether there is nothing to send.
func (m Message) Empty() bool { return strings.TrimSpace(m.prompt) == "" }

// Prompt is what the model is told, but for the files that it takes in.
func (m Message) Prompt() string { return m.prompt }

// Pictures are the paths of its pictures.
func (m Message) Pictures() []string { return slices.Clone(m.pictures) }

// Typed is the message as the person typed it.
func (m Message) Typed() string {
	typed, _ := m.draft.Message()
	return strings.TrimRight(typed, "\n")
}

func draftsOf(list []Message) (drafts []edit.Draft) {
	for _, m := range list {
		drafts = append(drafts, m.draft)
	}
	return drafts
}

func messagesOf(drafts []edit.Draft) (list []Message) {
	for _, d := range drafts {
		list = append(list, Of(d))
	}
	return list
}

func prompts(list []Message) (out []string) {
	for _, m := range list {
		out = append(out, m.prompt)
	}
	return out
}

// sameText reports whether two drafts are the same message.
func sameText(x, y edit.Draft) bool {
	one, pictures := x.Message()
	other, more := y.Message()
	return one == other && slices.EqualFunc(pictures, more, func(p, q edit.Chip) bool { return p.Path == q.Path })
}
