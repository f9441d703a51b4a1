package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"agent/internal/engine"
	"agent/internal/model"
	"agent/internal/model/anthropic"
	"agent/internal/model/bedrock"
	"agent/internal/model/chat"
	"agent/internal/model/chatgpt"
	"agent/internal/model/responses"
	"agent/internal/model/scripted"
	"agent/internal/model/wire"
	"agent/internal/place"
	"agent/internal/secret"
	"agent/internal/tool"
	"agent/internal/window"
	"agent/protocol"
)

// Settings are what the flags of serve say. Everything is stated: no variable
// stands in for a flag (cli.md 15).
type Settings struct {
	Store     string
	Socket    string // "": standard input and output
	Providers []string
	Limits    protocol.Limits
	Walls     []string
	Protect   []string
	Config    string // config.toml, for the shell's environment policy
	Version   string
}

// StartClean closes the files that the program inherited, and begins it anew
// where it inherited ignored or blocked signals: every command of a bot would
// inherit them in turn. A program that
// goes on to Serve calls it before it holds anything.
func StartClean() error { return tool.StartClean() }

// Serve is the daemon from its flags to its end. It returns nil for an end
// that was asked for; other errors carry a code (ExitCode).
func Serve(ctx context.Context, set Settings, stdin io.Reader, stdout, stderr io.Writer) error {
	opt, err := setUp(set, stderr)
	if err != nil {
		return err
	}
	opt.Stdin, opt.Stdout = stdin, stdout
	ctx, stop := withSignals(ctx, set.Socket == "")
	defer stop()
	return explain(Run(ctx, opt), opt.Store)
}

// explain says, where the daemon ended by the store, which store and what can
// be done about it.
func explain(err error, path string) error {
	var e *protocol.Error
	if !errors.As(err, &e) || e.Code != protocol.StorageError {
		return err
	}
	hint := "the store is " + path
	if strings.HasPrefix(e.Detail, "sqlite_primary=13 ") {
		hint = "the disk that holds " + path + " is full; make room and start again"
	}
	return protocol.Fail(e.Code, e.Detail+": "+hint)
}

// withSignals ends the daemon at SIGTERM and SIGINT. SIGPIPE is caught and
// dropped: left alone, a starter that closed our output would end us; ignored,
// every command would inherit that. SIGHUP ends an owner's daemon and is
// dropped by one on a socket (runtime.md 28).
func withSignals(ctx context.Context, stdio bool) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	dropped := make(chan os.Signal, 1)
	signal.Notify(dropped, syscall.SIGPIPE)
	if stdio {
		signal.Notify(ends, syscall.SIGHUP)
	} else {
		signal.Notify(dropped, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-ends:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(ends); cancel() }
}

func setUp(set Settings, stderr io.Writer) (Options, error) {
	var opt Options
	if len(set.Providers) == 0 {
		return opt, protocol.Fail(protocol.NoProviders, "name one with --provider")
	}
	path, err := place.Canonical(set.Store)
	if err != nil {
		return opt, err
	}
	if err := apart(path, set.Socket); err != nil {
		return opt, err
	}
	self, err := os.Executable()
	if err != nil {
		return opt, err
	}
	config := set.Config
	if config == "" {
		home, err := place.Home()
		if err != nil {
			return opt, err
		}
		config = filepath.Join(home, ".agent", "config.toml")
	}
	policy, err := secret.LoadPolicy(config)
	if err != nil {
		return opt, err
	}
	walls, err := madeDirs(set.Walls)
	if err != nil {
		return opt, err
	}
	for _, wall := range walls {
		if info, err := os.Stat(wall); err != nil || !info.IsDir() {
			return opt, fmt.Errorf("--wall %s is no folder; only a folder can be hidden", wall)
		}
	}
	protect, err := madeDirs(set.Protect)
	if err != nil {
		return opt, err
	}
	known := &secret.Values{}
	takeProxies(known, os.Getenv)
	specs, err := model.ParseSpecs(set.Providers)
	if err != nil {
		return opt, err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	keyVars := takeKeys(known, specs, log)
	file, err := chatgpt.DefaultFile()
	if err != nil {
		return opt, err
	}
	limits := set.Limits
	transports := wire.NewTransports(wire.Options{Connections: int(limits.Connections), Connecting: int(limits.Connecting)})
	creds := &credentials{file: file, send: transports, known: known, getenv: os.Getenv, version: set.Version}
	creds.claim(specs)
	registry, err := registryOf(specs, wire.Env{
		Transports: transports, Getenv: os.Getenv, Version: set.Version,
		Redact:     func(s string) string { return string(known.Bytes([]byte(s))) },
		Credential: creds.of,
	})
	if err != nil {
		return opt, err
	}
	opt = Options{
		Store: path, Socket: set.Socket, Version: set.Version, Limits: limits, Walls: walls, Protect: protect,
		Registry: registry, AWS: creds.aws, Log: log, InFlight: transports.InFlightByShard,
		Engine: engine.Config{
			Providers: map[string]model.Provider{}, Codecs: codecs(), Tools: tool.All(), Redact: secret.NewRedactor(known),
			Limits: engine.Limits{
				Active: limits.Active, Processes: limits.Processes, Detached: limits.Detached, Pending: limits.Pending, PendingBytes: limits.PendingBytes,
				Context:   window.Bounds{Bytes: limits.ContextBytes, Items: limits.ContextItems},
				CompactAt: limits.CompactAt, CompactKeep: limits.CompactKeep, KeepWarm: time.Duration(limits.KeepWarmSeconds) * time.Second,
				NoteTurns: limits.NoteTurns, Stall: time.Duration(limits.StallTimeoutSeconds) * time.Second, CacheTTL: limits.CacheTTL,
				Hold: time.Duration(limits.ApprovalHoldMS) * time.Millisecond,
			},
			Environ: secret.ShellEnv(os.Environ(), keyVars, policy), Shell: tool.FindShell(), Self: self,
		},
	}
	opt.ProxyOf = transports.ProxyOf
	if limits.RetainTurns != nil {
		opt.Engine.Limits.RetainTurns = *limits.RetainTurns
	}
	if limits.OutputTokens != nil {
		opt.Engine.Limits.MaxOutput = *limits.OutputTokens
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		opt.Engine.Peak = limitMemory
		limitMemory(0)
	}
	for _, name := range registry.Names() {
		opt.Engine.Providers[name], _ = registry.Provider(name)
	}
	return opt, nil
}

// apart refuses a socket at the place of one of the store's own files, whose
// lock would then look like another daemon's.
func apart(store, socket string) error {
	if socket == "" {
		return nil
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(socket))
	if err != nil {
		return nil // the claim of the socket makes the folder or says what is wrong
	}
	at := filepath.Join(folder, filepath.Base(socket))
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".owner-lock", ".files", ".companions", ".log"} {
		if at == store+suffix {
			return protocol.Fail(protocol.InvalidSocketPath, socket+" is one of the store's own files; name another path")
		}
	}
	return nil
}

// limitMemory sets the collector's backstop: what 32 turns need, and a little
// more for each that runs beside them. It is far above what is live, so that it
// never becomes collections without end.
func limitMemory(turns int) {
	debug.SetMemoryLimit(36<<20 + 128<<10*int64(max(turns-32, 0)))
}

// codecs are the families this build has.
func codecs() map[model.Family]model.Codec {
	return map[model.Family]model.Codec{
		model.FamilyAnthropic: anthropic.Codec{}, model.FamilyResponses: responses.Codec{},
		model.FamilyChat: chat.Codec{}, model.FamilyScripted: scripted.Codec{},
	}
}

func registryOf(specs []model.Spec, env wire.Env) (*model.Registry, error) {
	all := codecs()
	return model.NewRegistry(specs, env.Getenv, map[model.Family]model.Binding{
		model.FamilyAnthropic: {Codec: all[model.FamilyAnthropic], New: func(s model.Spec) (model.Provider, error) {
			return anthropic.New(s.Name, s, env)
		}},
		model.FamilyResponses: {Codec: all[model.FamilyResponses], New: func(s model.Spec) (model.Provider, error) {
			return responses.New(s.Name, s, env)
		}},
		model.FamilyChat: {Codec: all[model.FamilyChat], New: func(s model.Spec) (model.Provider, error) {
			return chat.New(s.Name, s, env)
		}},
		model.FamilyScripted: {Codec: all[model.FamilyScripted], New: func(s model.Spec) (model.Provider, error) {
			return scripted.New(strings.TrimPrefix(s.URL, "builtin"))
		}},
	})
}

// takeKeys makes the providers' keys known to the redactor and gives the names
// of their variables, which no command gets to see.
func takeKeys(known *secret.Values, specs []model.Spec, log *slog.Logger) (vars []string) {
	for _, s := range specs {
		if s.KeyEnv != "" {
			vars = append(vars, s.KeyEnv)
		}
		if s.Bedrock() {
			vars = append(vars, bedrock.Variables...)
		}
	}
	slices.Sort(vars)
	vars = slices.Compact(vars)
	for _, name := range vars {
		for _, short := range known.Add(secret.Named{Name: name, Value: secret.NewValue(os.Getenv(name))}) {
			log.Warn("a key is too short to be masked in tool output", "variable", short)
		}
	}
	return vars
}

// madeDirs makes the folders that are missing, 0700, and gives all real paths.
func madeDirs(paths []string) ([]string, error) {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		if _, err := os.Stat(p); errors.Is(err, os.ErrNotExist) {
			if err := os.MkdirAll(p, 0o700); err != nil {
				return nil, fmt.Errorf("%w; a daemon needs that folder: make it, or, where it lies below HOME, set HOME to a folder that you may write to", err)
			}
		}
		real, err := filepath.EvalSymlinks(p)
		if err != nil {
			return nil, err
		}
		out = append(out, real)
	}
	return out, nil
}

// ExitCode is serve's exit status for an error of Serve: 75 when the store or
// the socket belongs to another daemon (protocol.md 3).
func ExitCode(err error) int {
	switch Code(err) {
	case "":
		if err == nil {
			return 0
		}
	case protocol.StoreAlreadyOwned, protocol.SocketAlreadyOwned:
		return 75
	}
	return 1
}

// Code is the error code that serve reports, "" for an error without one.
func Code(err error) protocol.Code {
	if c := protocol.CodeOf(err); c != "" {
		return c
	}
	var p *place.Error
	if errors.As(err, &p) {
		return protocol.Code(p.Code)
	}
	var m *model.Error
	if errors.As(err, &m) {
		return protocol.Code(m.Code)
	}
	return ""
}
