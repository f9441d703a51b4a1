package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agent/client"
	"agent/client/envfile"
	"agent/client/modelsfile"
	"agent/internal/place"
	"agent/internal/sonny/config"
	"agent/internal/sonny/setup"

	"golang.org/x/sys/unix"
)

func (d *Doctor) agentDir() string { return filepath.Join(d.o.Home, ".agent") }

// mine reports whether a file is the caller's own.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// homeMode looks at ~/.agent and ~/.agents.
func (d *Doctor) homeMode(context.Context) finding {
	dir := d.agentDir()
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return warn("~/.agent is not there yet", "sonny setup makes it")
	case err != nil:
		return failed("~/.agent cannot be looked at: "+reason(err), "see to it that ~/.agent is a folder of your own")
	case info.Mode().Type() == fs.ModeSymlink:
		return d.homeLink(dir)
	case !info.IsDir():
		return failed("~/.agent is no folder", "move it away; sonny setup makes the folder")
	case !mine(info):
		return failed("~/.agent belongs to another user", "make it yours: sudo chown -R \"$USER\" ~/.agent")
	case info.Mode().Perm() != 0o700:
		return failed(fmt.Sprintf("~/.agent has mode %04o", info.Mode().Perm()), "chmod 700 ~/.agent").
			mend(mend{"make ~/.agent 0700?", func(context.Context) error { return place.MakePrivateDir(dir) }})
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return failed("~/.agent cannot be written: "+err.Error(), "no daemon starts and nothing is kept while that is so; make it writable")
	}
	return d.agentsDir()
}

// homeLink is ~/.agent as a link, which the daemon follows.
func (d *Doctor) homeLink(dir string) finding {
	const remedy = "put the folder itself there"
	info, err := os.Stat(dir)
	switch {
	case err != nil || !info.IsDir():
		return failed("~/.agent is a link that leads to no folder", remedy)
	case !mine(info) || info.Mode().Perm() != 0o700:
		return failed(fmt.Sprintf("~/.agent is a link to a folder that is not yours alone (mode %04o)", info.Mode().Perm()), remedy+", 0700")
	}
	return warn("~/.agent is a link to a folder of yours", remedy+": what a link leads to is easily another's")
}

func (d *Doctor) agentsDir() finding {
	dir := filepath.Join(d.o.Home, ".agents")
	info, err := os.Stat(dir) // it is as the person has it, which may be a link
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return warn("~/.agents is not there; your instructions, skills and facts live in it", "mkdir -m 700 ~/.agents").
			mend(mend{"make ~/.agents?", func(context.Context) error { return place.MakeOwnDir(dir) }})
	case err != nil:
		return failed("~/.agents cannot be looked at: "+reason(err), "see to it that ~/.agents is a folder")
	case !info.IsDir():
		return failed("~/.agents is no folder", "move it away, then: mkdir -m 700 ~/.agents")
	}
	return okf("~/.agent is yours alone, ~/.agents is there")
}

func (d *Doctor) envPath() string { return filepath.Join(d.agentDir(), "env") }

// readEnv takes what can be read of the env file, whatever its mode: what is wrong with
// it is told by the checks.
func (d *Doctor) readEnv() {
	d.vars = nil
	text, _, err := place.ReadOwn(d.envPath(), envfile.MaxSize)
	if err == nil {
		d.vars, _ = envfile.Parse(d.envPath(), text)
	}
	d.environ = starting(d.o.Environ, d.vars)
}

func (d *Doctor) envMode(context.Context) finding {
	path := d.envPath()
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return okf("~/.agent/env is not there: no variable of its is used")
	case err != nil:
		return failed("~/.agent/env cannot be looked at: "+reason(err), "see to it that ~/.agent is yours")
	}
	_, mode, err := place.ReadOwn(path, envfile.MaxSize)
	switch {
	case err != nil:
		return failed(reason(err), "put a file of your own of at most 64 KiB there, 0600; sonny env set NAME makes one")
	case mode.Perm()&0o077 != 0:
		return failed(fmt.Sprintf("env_file_permissions: ~/.agent/env can be read by others (mode %04o)", mode.Perm()), "chmod 600 ~/.agent/env").
			mend(mend{"make ~/.agent/env 0600?", func(context.Context) error { return tighten(path) }})
	}
	return okf("~/.agent/env is yours alone, %d bytes", info.Size())
}

// tighten makes a file 0600. It follows no link and takes regular files only.
func tighten(path string) error {
	f, err := place.OpenPrivate(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	return f.Close()
}

func (d *Doctor) envParse(context.Context) finding {
	text, _, err := place.ReadOwn(d.envPath(), envfile.MaxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return okf("there is no file to read")
	case err != nil:
		return skipf("it cannot be read; see env.mode")
	}
	vars, err := envfile.Parse(d.envPath(), text)
	if err != nil {
		return faultOf(Fail, err, "each line is NAME=VALUE, or begins with #")
	}
	var names []string
	for _, v := range vars {
		names = append(names, v.Name)
	}
	return okf("%s", counted(len(vars), "variable")).with(listed(names))
}

func (d *Doctor) envShadowed(context.Context) finding {
	hidden := config.HiddenEnv(d.vars, d.o.Environ)
	if len(hidden) == 0 {
		return okf("no value of the file is hidden by the environment")
	}
	return warn(listed(hidden)+": the environment has another value than ~/.agent/env, and it is the one that holds",
		"unset the variable where your shell sets it, or take it out of the file: sonny env unset NAME")
}

func (d *Doctor) configParse(context.Context) finding {
	if err := d.o.ConfigErr; err != nil {
		return faultOf(Fail, err, "sonny config edit")
	}
	var wrong []string
	for _, n := range d.o.Notices {
		if n.Kind == config.Other {
			wrong = append(wrong, n.Text)
		}
	}
	if len(wrong) > 0 {
		summary := wrong[0]
		if more := len(wrong) - 1; more > 0 {
			summary += fmt.Sprintf(" (and %d more)", more)
		}
		return warn(summary, "sonny config edit").with(strings.Join(wrong, "; "))
	}
	if _, err := os.Lstat(d.o.ConfigPath); errors.Is(err, fs.ErrNotExist) {
		return okf("there is no config.toml: the defaults hold")
	}
	return okf("config.toml parses")
}

func (d *Doctor) configUnknown(context.Context) finding {
	var keys []string
	for _, n := range d.o.Notices {
		if n.Kind == config.UnknownKey {
			keys = append(keys, n.Key)
		}
	}
	if len(keys) == 0 {
		return okf("no unknown key")
	}
	return warn(fmt.Sprintf("%s: %s", counted(len(keys), "unknown key"), listed(keys)), "sonny config list --defaults lists those that there are")
}

func (d *Doctor) configSecrets(context.Context) finding {
	if d.o.Config == nil {
		return skipf("config.toml was not read")
	}
	if leak := d.o.Config.Leak(); leak != nil {
		return faultOf(Fail, leak, "")
	}
	return okf("no value looks like a secret")
}

// providers names them, and the variables that their keys are in.
func (d *Doctor) providers(context.Context) finding {
	specs := client.ImpliedProviders(d.environ)
	if len(specs) == 0 {
		return failed("no provider is connected", "sonny setup")
	}
	var names, lack []string
	for _, spec := range specs {
		name, _, _ := strings.Cut(spec, "=")
		keys := client.KeyVariables([]string{spec})
		if p, ok := setup.ByName(name); ok && spec == name {
			keys = []string{p.Variable}
		}
		for _, key := range keys {
			if strings.TrimSpace(envfile.Get(d.environ, key)) == "" {
				lack = append(lack, name+" needs "+key)
			}
			name += " (" + key + ")"
		}
		names = append(names, name)
	}
	if len(lack) > 0 {
		return failed(strings.Join(lack, ", ")+", which has no value", "sonny env set NAME").with(listed(names))
	}
	return okf("%s", listed(names))
}

// chatgpt looks at the sign-in file, of which it says the mode and the expiry alone.
func (d *Doctor) chatgpt(context.Context) finding {
	path := filepath.Join(d.agentDir(), "chatgpt.json")
	text, mode, err := place.ReadOwn(path, 64<<10)
	const again = "sonny login chatgpt"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return skipf("there is no ChatGPT sign-in")
	case err != nil:
		return faultOf(Fail, err, again)
	case mode.Perm()&0o077 != 0:
		return failed(fmt.Sprintf("~/.agent/chatgpt.json can be read by others (mode %04o)", mode.Perm()), "chmod 600 ~/.agent/chatgpt.json, or "+again)
	}
	var file struct {
		ExpiresAt int64 `json:"expires_at"`
	}
	switch {
	case json.Unmarshal(text, &file) != nil || file.ExpiresAt < 0:
		return failed("~/.agent/chatgpt.json is no sign-in file", again)
	case file.ExpiresAt == 0:
		return okf("signed in; when the access token ends is not known")
	}
	at := time.Unix(file.ExpiresAt, 0)
	if left := at.Sub(d.o.Now()); left > 0 {
		return okf("signed in; the access token holds for %s and is renewed", left.Truncate(time.Minute))
	}
	return warn("the access token ended at "+at.UTC().Format(time.RFC3339)+"; the next request renews it", "when a request says so: "+again)
}

func (d *Doctor) models(context.Context) finding {
	list, there, err := modelsfile.Read(filepath.Join(d.agentDir(), "models"))
	if err != nil {
		return faultOf(Fail, err, "sonny models --discover writes it anew")
	}
	set := ""
	if d.o.Config != nil {
		set = d.o.Config.Model
	}
	switch {
	case !there:
		return warn("~/.agent/models is not there: no model is offered", "sonny models --discover")
	case set == "":
		return okf("%s; no default is set", counted(len(list), "model"))
	case !slices.ContainsFunc(list, func(m modelsfile.Model) bool { return m.ID == set }):
		return warn("the default model "+set+" is not in ~/.agent/models", "sonny config set model PROVIDER/MODEL, or sonny models --discover")
	}
	return okf("%s, the default %s among them", counted(len(list), "model"), set)
}
