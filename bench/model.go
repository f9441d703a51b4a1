package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"agent/internal/fakemodel"
)

// modelServer is the provider, in a process of its own.
type modelServer struct {
	url   string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	stray bytes.Buffer // its standard error
}

// startModel starts a server: the program self with these arguments, the first
// of which says which one.
func startModel(ctx context.Context, self string, args ...string) (*modelServer, error) {
	m := &modelServer{cmd: exec.CommandContext(ctx, self, args...)}
	m.cmd.Stderr = &m.stray
	var err error
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.out = bufio.NewReader(out)
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	var ready struct{ URL string }
	if err := m.read(&ready); err != nil {
		m.in.Close()
		return nil, errors.Join(err, m.cmd.Wait())
	}
	m.url = ready.URL
	return m, nil
}

func (m *modelServer) read(v any) error {
	line, err := m.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the model server: %w; %s", err, m.stray.Bytes())
	}
	return json.Unmarshal(line, v)
}

// ask sends a command of fakemodel.Main and reads its answer.
func (m *modelServer) ask(command string, v any) error {
	if _, err := io.WriteString(m.in, command+"\n"); err != nil {
		return err
	}
	return m.read(v)
}

func (m *modelServer) stats() (s fakemodel.Stats, err error) {
	err = m.ask("stats", &s)
	return s, err
}

// close ends the server. Anything it found wrong is the error.
func (m *modelServer) close() error {
	var wrong []fakemodel.Violation
	err := m.ask("violations", &wrong)
	m.in.Close()
	if end := m.cmd.Wait(); len(wrong) == 0 && err == nil {
		return end
	}
	for i, v := range wrong {
		if i == 3 {
			return errors.Join(err, fmt.Errorf("and %d more", len(wrong)-i))
		}
		err = errors.Join(err, fmt.Errorf("the model server refused a request: %w", &v))
	}
	return err
}
