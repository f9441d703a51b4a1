// Command standin is a one-shot client of a model server, as small as one can
// be: a prompt, commands as long as the model asks for them, the answer.
// What it does wrong is asked for by a word before the prompt.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []call `json:"tool_calls,omitempty"`
	ID      string `json:"tool_call_id,omitempty"`
}

func main() {
	if err := run(os.Args[1], os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

func run(how, prompt string) error {
	if how == "--version" {
		fmt.Println("standin 7")
		return nil
	}
	if how == "--call-home" {
		if c, err := net.Dial("tcp", os.Getenv("HOME_ADDRESS")); err == nil {
			c.Close()
			return fmt.Errorf("it reached home")
		}
	}
	url, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), "url"))
	if err != nil {
		return err
	}
	messages := []message{{Role: "user", Content: prompt}}
	for {
		answer, err := ask(string(url), how, messages)
		if err != nil {
			return err
		}
		if len(answer.Calls) == 0 || how == "--no-tools" {
			if how != "--silent" {
				fmt.Println(answer.Content)
			}
			return nil
		}
		if messages = append(messages, answer); how == "--forget" {
			continue
		}
		for _, c := range answer.Calls {
			var args struct{ Command string }
			if err := json.Unmarshal([]byte(c.Function.Arguments), &args); err != nil {
				return err
			}
			out, err := exec.Command("sh", "-c", args.Command).CombinedOutput()
			if err != nil {
				return err
			}
			messages = append(messages, message{Role: "tool", ID: c.ID, Content: string(out)})
		}
	}
}

func ask(url, how string, messages []message) (answer message, err error) {
	name := "bash"
	if how == "--odd-tool" {
		name = "guess"
	}
	body, err := json.Marshal(map[string]any{"model": "fake", "stream": true, "messages": messages, "tools": []any{
		map[string]any{"type": "function", "function": map[string]any{"name": name, "parameters": map[string]any{
			"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}, "required": []string{"command"},
		}}},
	}})
	if err != nil {
		return answer, err
	}
	response, err := http.Post(url+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		text, _ := io.ReadAll(response.Body)
		return answer, fmt.Errorf("%s: %s", response.Status, text)
	}
	answer.Role = "assistant"
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: {")
		if !found {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string
					Calls   []call `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal([]byte("{"+data), &chunk); err != nil {
			return answer, err
		}
		for _, c := range chunk.Choices {
			answer.Content += c.Delta.Content
			answer.Calls = append(answer.Calls, c.Delta.Calls...)
		}
	}
	return answer, lines.Err()
}
