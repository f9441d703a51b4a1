package connect

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/client"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

func TestMain(m *testing.M) { sonnytest.Main(m) }

// at makes a home whose path tests may spell, and lets place look there.
func at(t *testing.T) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	return home
}

func TestStartingOptions(t *testing.T) {
	home := at(t)
	below := func(names ...string) []string {
		for i := range names {
			names[i] = filepath.Join(home, names[i])
		}
		return names
	}
	scheduler, _ := filepath.Rel(home, SchedulerDir(home))
	active := int64(7)
	for _, row := range []struct {
		name           string
		o              Options
		walls, protect []string
	}{
		{
			"the default store",
			Options{Target: client.Target{Store: filepath.Join(home, ".agent", "state.sqlite")}},
			below(".agent/run"), below(".agent/rules", ".agent/triggers", ".agent/sonny", scheduler),
		},
		{
			"a store elsewhere: ~/.agent itself is protected",
			Options{Target: client.Target{Store: "/srv/state.sqlite"}},
			below(".agent/run"), below(".agent/rules", ".agent/triggers", ".agent/sonny", scheduler, ".agent"),
		},
		{
			"a store in a folder below ~/.agent counts as elsewhere",
			Options{Target: client.Target{Store: filepath.Join(home, ".agent", "x", "state.sqlite")}},
			below(".agent/run"), below(".agent/rules", ".agent/triggers", ".agent/sonny", scheduler, ".agent"),
		},
		{
			"the settings' own come last",
			Options{
				Target: client.Target{Store: filepath.Join(home, ".agent", "state.sqlite")}, Walls: []string{"/w"}, Protect: []string{"/p"},
				Config: "/c.toml", Limits: client.Limits{MaxActive: &active},
			},
			append(below(".agent/run"), "/w"), append(below(".agent/rules", ".agent/triggers", ".agent/sonny", scheduler), "/p"),
		},
	} {
		s, err := row.o.Starter()
		if err != nil || !slices.Equal(s.Walls, row.walls) || !slices.Equal(s.Protect, row.protect) || s.Config != row.o.Config || s.Limits.MaxActive != row.o.Limits.MaxActive {
			t.Errorf("%s: %+v, %v", row.name, s, err)
		}
	}
}

func TestMissing(t *testing.T) {
	home := at(t)
	o := Options{Target: client.Target{Store: filepath.Join(home, ".agent", "state.sqlite")}, Walls: []string{filepath.Join(home, "link", "wall")}}
	if err := errors.Join(os.Mkdir(filepath.Join(home, "real"), 0o700), os.Symlink("real", filepath.Join(home, "link"))); err != nil {
		t.Fatal(err)
	}
	rules, run := filepath.Join(home, ".agent", "rules"), filepath.Join(home, ".agent", "run")
	wall := filepath.Join(home, "real", "wall") // paths are compared as they are, not as they are spelt
	triggers, sonny := filepath.Join(home, ".agent", "triggers"), filepath.Join(home, ".agent", "sonny")
	for _, row := range []struct {
		name  string
		ready protocol.Ready
		want  []Missing
	}{
		{"nothing", protocol.Ready{Walls: []string{run, wall}, Protected: []string{rules, triggers, sonny, SchedulerDir(home)}}, nil},
		{"more than is wanted", protocol.Ready{Walls: []string{"/x", run, wall}, Protected: []string{"/y", rules, triggers, sonny, SchedulerDir(home)}}, nil},
		{"a wall", protocol.Ready{Walls: []string{run}, Protected: []string{rules, triggers, sonny, SchedulerDir(home)}}, []Missing{{wall, true}}},
		{"what agent start leaves out", protocol.Ready{Walls: []string{run, wall}, Protected: []string{rules}}, []Missing{{triggers, false}, {sonny, false}, {SchedulerDir(home), false}}},
	} {
		l := &Link{Ready: &row.ready}
		if err := l.look(&o); err != nil || !slices.Equal(l.Missing, row.want) {
			t.Errorf("%s: %v, %v", row.name, l.Missing, err)
		}
	}
}

func TestCovers(t *testing.T) {
	home := at(t)
	if err := errors.Join(os.MkdirAll(filepath.Join(home, "work"), 0o700), os.Symlink(home, filepath.Join(home, "work", "up"))); err != nil {
		t.Fatal(err)
	}
	jobs := SchedulerDir(home)
	l := &Link{Missing: []Missing{{Path: jobs}}}
	for _, row := range []struct {
		name, sandbox, workspace string
		roots                    []string
		refused                  bool
	}{
		{"a workspace that holds it", protocol.SandboxWorkspace, home, nil, true},
		{"the path itself", protocol.SandboxWorkspace, jobs, nil, true},
		{"a root that holds it", protocol.SandboxWorkspace, filepath.Join(home, "work"), []string{home}, true},
		{"a root that leads there by a link", protocol.SandboxWorkspace, filepath.Join(home, "work"), []string{filepath.Join(home, "work", "up")}, true},
		{"a folder beside it", protocol.SandboxWorkspace, filepath.Join(home, "work"), nil, false},
		{"a name that begins alike", protocol.SandboxWorkspace, jobs + "-not", nil, false},
		{"a bot that writes nothing", "read-only", home, nil, false},
		{"a bot without a sandbox", protocol.SandboxFull, home, nil, false},
	} {
		err := l.Covers(row.sandbox, row.workspace, row.roots)
		if (protocol.CodeOf(err) == "daemon_options") != row.refused || err != nil && (!row.refused || !strings.Contains(err.Error(), jobs)) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	if err := (&Link{}).Covers(protocol.SandboxWorkspace, home, nil); err != nil {
		t.Errorf("with nothing missing: %v", err)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	mismatch := protocol.Fail(protocol.DaemonProtocolMismatch, "no")
	for _, row := range []struct {
		name  string
		ready *protocol.Ready
		err   error
		want  protocol.Code
	}{
		{"an older daemon", &protocol.Ready{Protocol: protocol.Version - 1, Version: "v1"}, mismatch, "daemon_older"},
		{"a newer daemon", &protocol.Ready{Protocol: protocol.Version + 1, Version: "v9"}, mismatch, "daemon_newer"},
		{"a listener that is no daemon", nil, mismatch, protocol.DaemonProtocolMismatch},
		{"a ready line that does not parse", &protocol.Ready{Protocol: protocol.Version}, mismatch, protocol.DaemonProtocolMismatch},
		{"another failure", &protocol.Ready{Protocol: 1}, protocol.Fail(protocol.DaemonUnavailable, "no"), protocol.DaemonUnavailable},
	} {
		if err := versions(row.ready, row.err); protocol.CodeOf(err) != row.want {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// SO-109's daemon: one that agent start started, so without what only sonny wants.
func TestADaemonThatAgentStarted(t *testing.T) {
	h := sonnytest.Fresh(t)
	t.Setenv("HOME", h.Dir)
	if r := h.Agent("start"); r.Exit != 0 {
		t.Fatalf("%+v", r)
	}
	o := Options{Target: h.Client().Target, Companions: []protocol.CompanionSpec{{Name: "idle", Command: []string{"/bin/sleep", "1000"}}}}
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Started || l.Ready.PID != h.DaemonPID() {
		t.Errorf("started %t, %d", l.Started, l.Ready.PID)
	}
	real, err := filepath.EvalSymlinks(h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Missing{{Path: filepath.Join(real, ".agent", "triggers")}, {Path: filepath.Join(real, ".agent", "sonny")}, {Path: SchedulerDir(real)}}
	if !slices.Equal(l.Missing, want) {
		t.Errorf("it lacks %v", l.Missing)
	}
	if err := l.Covers(protocol.SandboxWorkspace, h.Dir, nil); protocol.CodeOf(err) != "daemon_options" {
		t.Errorf("%v", err)
	}
	kept, err := l.Companions(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Name != "idle" {
		t.Errorf("companions %v, %v", kept, err)
	}
}

func TestExplicitSocketStartsNothing(t *testing.T) {
	h := sonnytest.Fresh(t)
	t.Setenv("HOME", h.Dir)
	began := time.Now()
	_, err := Open(t.Context(), Options{Target: h.Client().Target, Explicit: true})
	if !errors.Is(err, protocol.DaemonUnavailable) || time.Since(began) > 30*time.Second || h.DaemonPID() != 0 {
		t.Errorf("%v", err)
	}
}

func TestADaemonThatIsStartedHere(t *testing.T) {
	h := sonnytest.Fresh(t)
	for _, entry := range h.Env {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	t.Setenv("AGENT_BIN", filepath.Join(sonnytest.Programs(t), "agent"))
	l, err := Open(t.Context(), Options{Target: h.Client().Target, Config: h.Path(".agent", "config.toml")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !l.Started || len(l.Missing) != 0 || l.Ready.PID != h.DaemonPID() {
		t.Errorf("started %t, it lacks %v", l.Started, l.Missing)
	}
	if err := l.Covers(protocol.SandboxWorkspace, h.Dir, nil); err != nil {
		t.Errorf("%v", err)
	}
}
