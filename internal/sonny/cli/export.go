package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"

	"agent/client"
	"agent/client/items"
	"agent/client/termsafe"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/screen/cells"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// exportCommand is sonny sessions export.
func (a *app) exportCommand() *cobra.Command {
	var format, tools string
	cmd := &cobra.Command{
		Use: "export SESSION", Short: "Print what was said, as Markdown or as JSON lines", Args: cobra.ExactArgs(1),
		Long: "Prints a session's history as it is stored, the oldest first. What the daemon redacted stays\nredacted; keys are not in it.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.export(cmd, args[0], format, tools) },
	}
	cmd.Flags().StringVar(&format, "format", "md", "md, or json: an object a line")
	cmd.Flags().StringVar(&tools, "tools", "summary", "what of tool calls: none, summary (a line each) or full")
	return cmd
}

func (a *app) export(cmd *cobra.Command, word, format, tools string) error {
	switch {
	case format != "md" && format != "json":
		return usagef("--format is md or json")
	case tools != "none" && tools != "summary" && tools != "full":
		return usagef("--tools is none, summary or full")
	}
	_, link, f, _, err := a.one(cmd, word)
	if err != nil {
		return err
	}
	defer link.Close()
	out := bufio.NewWriter(a.stdout)
	e := &exporter{out: out, json: format == "json", tools: tools}
	if !e.json && isTerminal(a.stdout) {
		e.out = termsafe.NewWriter(out)
	}
	if err := e.all(cmd, link, f.Record.Name); err != nil {
		return err
	}
	return out.Flush()
}

// exporter writes a history.
type exporter struct {
	out   io.Writer
	json  bool
	tools string
}

// exported is a part of an item, in JSON.
type exported struct {
	Turn   int64  `json:"turn"`
	Node   int64  `json:"node"`
	Kind   string `json:"kind"` // user, assistant, thinking, tool_call, tool_result, other
	Tool   string `json:"tool,omitempty"`
	CallID string `json:"call_id,omitempty"`
	Text   string `json:"text"`
}

func (e *exporter) all(cmd *cobra.Command, link *connect.Link, bot string) error {
	for it, err := range link.History(cmd.Context(), bot, client.HistoryOptions{OldestFirst: true}) {
		if err != nil {
			return err
		}
		if it.Error != "" {
			if err := e.part(it, items.Part{Kind: items.Other, Text: "[" + string(it.Error) + "]"}); err != nil {
				return err
			}
			continue
		}
		for _, p := range items.Parts(it.Item) {
			if err := e.part(it, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *exporter) part(it *protocol.Item, p items.Part) error {
	call := p.Kind == items.Call || p.Kind == items.Result
	if call && (e.tools == "none" || e.tools == "summary" && p.Kind == items.Result) {
		return nil
	}
	text := p.Text
	if p.Kind == items.Call && e.tools == "summary" {
		text = cells.NewCall(p.CallID, p.Name, p.Text).Subject()
	}
	if e.json {
		line, err := json.Marshal(exported{it.Turn, it.Node, string(p.Kind), p.Name, p.CallID, text})
		if err == nil {
			_, err = e.out.Write(append(line, '\n'))
		}
		return err
	}
	_, err := io.WriteString(e.out, e.markdown(p, text))
	return err
}

// markdown is a part under its heading.
func (e *exporter) markdown(p items.Part, text string) string {
	switch p.Kind {
	case items.User:
		return "## You\n\n" + ended(text) + "\n"
	case items.Assistant:
		return "## Reply\n\n" + ended(text) + "\n"
	case items.Thinking:
		if strings.TrimSpace(text) == "" {
			return ""
		}
		return "> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ") + "\n\n"
	case items.Call:
		if e.tools == "summary" {
			return "- `" + p.Name + "` " + text + "\n\n"
		}
		return "### " + p.Name + "\n\n" + fenced(text)
	}
	return fenced(text)
}

func ended(text string) string { return strings.TrimRight(text, "\n") + "\n" }

// fenced is a text in a fence that is longer than any in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + ended(text) + fence + "\n\n"
}
