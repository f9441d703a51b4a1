package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"agent/client"
	"agent/internal/place"
	"agent/protocol"
)

// tryFor is how long a provider is waited for.
const tryFor = 10 * time.Second

// Refused is a provider's refusal of a key: nothing is kept unless the person says so.
type Refused struct{ Err error }

func (r Refused) Error() string { return r.Err.Error() }
func (r Refused) Unwrap() error { return r.Err }

// Try asks a provider for its models with a key: by a throwaway daemon on standard input
// and output, with a store in a private folder of scratch, which no agent writes, and
// that key alone in its environment.
// A Refused is the provider's own no; any other error says that it could not be asked.
func Try(ctx context.Context, agent, scratch string, p Provider, key string) (models []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	dir, err := place.NewScratch(scratch)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	env := append(PlainEnv(dir.Path), p.Variable+"="+key)
	c, end, err := Throwaway(ctx, agent, dir.Path, env, "--provider="+p.Name)
	if err != nil {
		return nil, err
	}
	defer end()
	lists, err := c.ProviderModels(ctx)
	if err != nil {
		return nil, err
	}
	list, ok := lists.Providers[p.Name]
	switch {
	case !ok:
		return nil, fmt.Errorf("the daemon knows no provider %s", p.Name)
	case refusal(list.Error):
		return nil, Refused{protocol.Fail(list.Error, list.Detail)}
	case list.Error != "":
		return nil, protocol.Fail(list.Error, list.Detail)
	}
	for _, m := range list.Models {
		models = append(models, p.Name+"/"+m.ID)
	}
	return models, nil
}

// refusal reports whether a code is of a provider that answered and said no.
func refusal(code protocol.Code) bool {
	switch code {
	case "provider_http_400", "provider_http_401", "provider_http_403", "provider_http_404":
		return true
	}
	return false
}

// PlainEnv is what a throwaway daemon gets of the caller's environment: where programs
// are, and how the network is reached.
func PlainEnv(home string) []string {
	env := []string{"HOME=" + home, "AGENT_STORE="}
	for _, name := range []string{"PATH", "LANG", "TMPDIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Throwaway starts a daemon that lives as long as the caller talks to it over its
// standard input and output, with its store in a folder of the caller's. end ends it and
// waits. One that does not come up is daemon_start_failed with its last words.
func Throwaway(ctx context.Context, agent, dir string, env []string, args ...string) (*client.Client, func(), error) {
	cmd := exec.CommandContext(ctx, agent, append([]string{"serve", "--store=" + filepath.Join(dir, "try.sqlite")}, args...)...)
	cmd.Env, cmd.Dir = env, dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	words := &lastWords{}
	cmd.Stderr = words
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	conn := &pipes{in: in, out: out}
	used := false
	c := &client.Client{
		Target: client.Target{Store: filepath.Join(dir, "try.sqlite"), Socket: filepath.Join(dir, "none.sock")},
		Dial: func(context.Context, string) (net.Conn, error) {
			if used {
				return nil, protocol.Fail(protocol.DaemonDisconnected, "the throwaway daemon has one connection")
			}
			used = true
			return conn, nil
		},
	}
	end := func() {
		c.Close()
		conn.Close()
		_ = cmd.Wait() // its status tells nothing that the answers did not
	}
	if _, err := c.Ready(ctx); err != nil {
		end()
		if said := words.String(); said != "" {
			err = protocol.Fail(protocol.DaemonStartFailed, said)
		}
		return nil, nil, err
	}
	return c, end, nil
}

// lastWords keeps the first 4 KiB of what a program says on its way out.
type lastWords struct{ strings.Builder }

func (w *lastWords) Write(p []byte) (int, error) {
	const most = 4 << 10
	w.Builder.Write(p[:min(len(p), max(0, most-w.Len()))])
	return len(p), nil
}

// String is what was said, without the program's name before it.
func (w *lastWords) String() string {
	return strings.TrimPrefix(strings.TrimSpace(w.Builder.String()), "agent: ")
}

// pipes are a child's standard input and output as a connection.
type pipes struct {
	in  io.WriteCloser
	out io.ReadCloser
}

func (p *pipes) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *pipes) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p *pipes) Close() error                { return errors.Join(p.in.Close(), p.out.Close()) }

// The rest of net.Conn: pipes have no addresses, and their deadlines are the files'.
func (p *pipes) LocalAddr() net.Addr  { return pipeAddr{} }
func (p *pipes) RemoteAddr() net.Addr { return pipeAddr{} }

func (p *pipes) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

func (p *pipes) SetReadDeadline(t time.Time) error {
	return deadline(p.out, t, (*os.File).SetReadDeadline)
}

func (p *pipes) SetWriteDeadline(t time.Time) error {
	return deadline(p.in, t, (*os.File).SetWriteDeadline)
}

func deadline(end any, t time.Time, set func(*os.File, time.Time) error) error {
	if f, ok := end.(*os.File); ok {
		return set(f, t)
	}
	return nil
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "stdio" }
