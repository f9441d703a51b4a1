package main

import (
	"net"
	"os"
	"os/exec"
	"time"

	"agent/protocol"
)

// pipes are a process's standard input and output as a connection.
type pipes struct {
	in, out       *os.File // ours
	theirs, other *os.File // the process's, until it is started
}

func newPipes(cmd *exec.Cmd) (*pipes, error) {
	p := &pipes{}
	var err error
	if p.theirs, p.in, err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.out, p.other, err = os.Pipe(); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = p.theirs, p.other
	return p, nil
}

// started lets go of the process's ends.
func (p *pipes) started() {
	p.theirs.Close()
	p.other.Close()
}

// line waits for one line of output.
func (p *pipes) line() error {
	r := protocol.NewLineReader(p.out)
	defer r.Close()
	_, err := r.Next()
	return err
}

func (p *pipes) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *pipes) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p *pipes) Close() error {
	p.out.Close()
	return p.in.Close()
}

func (p *pipes) SetDeadline(t time.Time) error {
	p.in.SetWriteDeadline(t)
	return p.out.SetReadDeadline(t)
}
func (p *pipes) SetReadDeadline(t time.Time) error  { return p.out.SetReadDeadline(t) }
func (p *pipes) SetWriteDeadline(t time.Time) error { return p.in.SetWriteDeadline(t) }
func (p *pipes) LocalAddr() net.Addr                { return &net.UnixAddr{Name: "stdio", Net: "unix"} }
func (p *pipes) RemoteAddr() net.Addr               { return p.LocalAddr() }
