package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Every field of Config is a setting, and the other way about: fill panics for a
// setting without a field of its type, and fields counts those without a setting.
func TestEverySettingHasItsField(t *testing.T) {
	t.Parallel()
	var all []Setting
	for _, k := range Keys {
		parts := slices.Clone(k.parts)
		for i, p := range parts {
			switch p {
			case "NAME", "VARIABLE", "TOOL", "HEADER":
				parts[i] = "x"
			case "MODEL":
				parts[i] = "p/m"
			case "ACTION":
				parts[i] = "send"
			}
		}
		if find(parts) != k {
			t.Errorf("%s does not find itself", k.Name)
		}
		v := k.Default
		if v == nil {
			v = example(t, k)
		}
		taken, ok := k.kind.take(v)
		if !ok {
			t.Errorf("%s: %v is none of its values", k.Name, v)
			continue
		}
		all = append(all, Setting{Key: k, Name: KeyText(parts), Value: v, parts: parts, taken: taken})
	}
	c := fill(all)
	if c.MCPServers["x"].Tools["x"].ApprovalMode == "" || *c.Pricing["p/m"].CacheWrite != 1 || c.Lookout.Sources["x"].Every == 0 {
		t.Errorf("%+v", c)
	}
	fields := map[string]bool{}
	fieldsOf(reflect.TypeOf(*c), "", fields)
	for _, k := range Keys {
		delete(fields, generic(k.Name))
	}
	if len(fields) > 0 {
		t.Errorf("fields without a setting: %v", fields)
	}
}

// example is a value of a key that has no default.
func example(t *testing.T, k *Key) any {
	for _, v := range []any{"p/m", "high", "read-only", "auto", "/x", "X", "https://x", int64(1), 1.0, []any{"x"}} {
		if _, ok := k.kind.take(v); ok {
			return v
		}
	}
	t.Fatalf("no example for %s", k.Name)
	return nil
}

// generic is a key's name with * for each name of the person's.
func generic(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		if isPlaceholder(p) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}

func fieldsOf(typ reflect.Type, above string, into map[string]bool) {
	switch {
	case typ.Kind() == reflect.Pointer && typ.Elem().Kind() == reflect.Struct:
		fieldsOf(typ.Elem(), above, into)
	case typ.Kind() == reflect.Map:
		fieldsOf(typ.Elem(), above+".*", into)
	case typ.Kind() == reflect.Struct:
		for i := range typ.NumField() {
			if tag := typ.Field(i).Tag.Get("toml"); tag != "" {
				fieldsOf(typ.Field(i).Type, above+"."+tag, into)
			}
		}
	default:
		into[strings.TrimPrefix(above, ".")] = true
	}
}

func TestTheTableIsSound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range Keys {
		if seen[k.Name] || k.Means == "" || k.Must() == "" || k.Default == nil && k.Else == "" && k.Same == "" {
			t.Errorf("%s: %+v", k.Name, k)
		}
		seen[k.Name] = true
	}
	for _, name := range []string{"row", "sandbox_mode", "web_search", "tools.disabled", "trust_folders", "mcp_servers.NAME.command", "lookout.sources.NAME.command", "agent.store", "desktop.enabled"} {
		if k := find(strings.Split(name, ".")); k == nil || !k.Confining() {
			t.Errorf("%s confines nothing", name)
		}
	}
	for _, name := range []string{"tui.theme", "notifications.when", "usage.show_cost"} {
		if k := find(strings.Split(name, ".")); k == nil || !k.Live || k.Confining() {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

func TestTheEnvironmentConfinesNothing(t *testing.T) {
	t.Parallel()
	for _, of := range append(ofEnviron, struct{ variable, key string }{"NO_MOTION", "tui.motion"}) {
		if k := find(ParseKey(of.key)); k == nil || k.Confining() {
			t.Errorf("%s sets %s", of.variable, of.key)
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		key  string
		good []any
		bad  []any
	}{
		{"judge_deadline_ms", []any{int64(1000), int64(90000)}, []any{int64(999), int64(90001), "30000", 30000.0}},
		{"row", []any{"auto", "full"}, []any{"Auto", "", true}},
		{"model", []any{"a/b/c"}, []any{"a", "/b", ""}},
		{"approval_expiry.auto", []any{"120s", "24h", "1000ms"}, []any{"25h", "0s", "never", "", "s", "1.5h", "-1s", int64(3), "99999999999d"}},
		{"approval_expiry.manual", []any{"never", "1h"}, []any{"Never", "2d"}},
		{"tasks.setup_timeout", []any{"1h", "60m"}, []any{"61m"}},
		{"sandbox_workspace_write.writable_roots", []any{[]any{}, []any{"/a", "~/b", "~"}}, []any{[]any{"a"}, "~/b", []any{"~a"}, []any{int64(1)}, []any{""}}},
		{"lookout.sources.x.every", []any{"30s", "stream"}, []any{"29s", "streams"}},
		{"memory.cleanup_at", []any{"03:30", "23:59"}, []any{"24:00", "3:30", "03:60"}},
		{"agent.idle_exit", []any{int64(0), int64(90), "10m"}, []any{int64(-1), "0s", "x"}},
		{"usage.daily_warn_usd", []any{int64(5), 0.5}, []any{-1.0, "5", int64(-1)}},
		{"mcp_servers.x.url", []any{"https://a.example/x", "http://127.0.0.1:1/"}, []any{"ftp://x", "https://", "x", "https://a b"}},
		{"mcp_servers.x.startup_timeout_sec", []any{int64(10), 10.0}, []any{0.5, int64(0), "10"}},
		{"tui.fold.output", []any{int64(0)}, []any{"2", int64(-1)}},
		{"tui.keys.queue_edit", []any{[]any{"ctrl+x d"}, []any{}}, []any{"ctrl+x d", []any{""}}},
		{"notifications.on", []any{[]any{"done"}, []any{}}, []any{[]any{"dune"}}},
		{"agents_md.fallbacks", []any{[]any{"CLAUDE.md"}}, []any{[]any{"a/b"}, []any{".."}}},
		{"home_backup.remote", []any{"", "git@example.com:a/b.git"}, []any{"a\nb", true}},
	} {
		t.Run(row.key, func(t *testing.T) {
			t.Parallel()
			k := find(ParseKey(row.key))
			for _, v := range row.good {
				if _, ok := k.kind.take(v); !ok {
					t.Errorf("%v is refused", v)
				}
			}
			for _, v := range row.bad {
				if got, ok := k.kind.take(v); ok {
					t.Errorf("%v is taken as %v", v, got)
				}
			}
		})
	}
}

func TestWhatIsNoSetting(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mcp_servers.a b.command", "mcp_servers.x", "mcp_servers.x.env.1A", "pricing.model.input", "tui.keys.Send", "tui", "rows", "mcp_servers.NAME.tools.a.b.approval_mode"} {
		if k := find(strings.Split(name, ".")); k != nil {
			t.Errorf("%s is %s", name, k.Name)
		}
	}
}

func TestLoosening(t *testing.T) {
	t.Parallel()
	list := func(s ...string) []string { return s }
	for _, row := range []struct {
		key      string
		old, now any
		wider    bool
	}{
		{"row", "auto", "full", true},
		{"row", "auto", "look", false},
		{"row", "manual", "auto", true},
		{"row", "full", "full", false},
		{"sandbox_mode", "read-only", "workspace-write", true},
		{"sandbox_mode", "workspace-write", "read-only", false},
		{"sandbox_workspace_write.network_access", true, false, false},
		{"sandbox_workspace_write.network_access", false, true, true},
		{"sandbox_workspace_write.writable_roots", list("/a"), list("/a", "/b"), true},
		{"sandbox_workspace_write.writable_roots", list("/a", "/b"), list("/a"), false},
		{"sandbox_workspace_write.exclude_slash_tmp", true, false, true},
		{"sandbox_workspace_write.exclude_slash_tmp", false, false, false},
		{"tools.disabled", list("shell"), list(), true},
		{"tools.disabled", list(), list("shell"), false},
		{"browser.allowed_hosts", list(), list("a"), false},
		{"browser.allowed_hosts", list("a"), list(), true},
		{"browser.allowed_hosts", list("a"), list("b"), true},
		{"web_search", "disabled", "cached", true},
		{"trust_folders", "ask", "always", true},
		{"mcp_servers.x.command", nil, "sh", true},
		{"mcp_servers.x.enabled", true, false, false},
		{"approval_expiry.manual", nil, nil, false},
	} {
		if got := find(ParseKey(row.key)).loosens(row.old, row.now); got != row.wider {
			t.Errorf("%s from %v to %v: %v", row.key, row.old, row.now, got)
		}
	}
}
