package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/config"
	"agent/internal/sonny/screen/lists"
)

// resolved are the settings of a config.toml in a home of its own.
func resolved(t *testing.T, file string, environ ...string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Resolve(config.Sources{
		Path: path, Environ: environ, Stated: []config.Stated{{Flag: "--row", Key: "row", Value: "manual"}}, Terminal: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// row is the text of a row, its spaces as one.
func row(t *testing.T, rows []lists.Row, id string) string {
	t.Helper()
	for _, r := range rows {
		if r.ID == id {
			return strings.Join(strings.Fields(r.Line.String()), " ")
		}
	}
	t.Fatalf("no row %q", id)
	return ""
}

func TestEverySettingSaysWhatHoldsAndWhereItIsFrom(t *testing.T) {
	t.Parallel()
	c := resolved(t, "compaction = \"off\"\n[tui.keys]\nreader = [\"ctrl+x w\"]\n", "AGENT_MODEL=openai/gpt-5")
	rows := All(c.Settings(true), false)
	for _, want := range []struct{ name, id, text string }{
		{"of the file", "compaction", "compaction off config.toml"},
		{"of the environment", "model", "model openai/gpt-5 environment"},
		{"of the line", "row", "row manual command line"},
		{"a default", "tui.wheel_rows", "wheel_rows 3 default"},
		{"nothing, in words", "effort", "effort the provider's default"},
		{"an empty text", "home_backup.remote", `remote "" default`},
		{"a name of the person's", "tui.keys.reader", `keys.reader ["ctrl+x w"] config.toml`},
	} {
		t.Run(want.name, func(t *testing.T) {
			if got := row(t, rows, want.id); got != want.text {
				t.Errorf("%q, not %q", got, want.text)
			}
		})
	}

	t.Run("those of no table stand before the first table, and each table has one heading", func(t *testing.T) {
		seen := map[string]int{}
		for _, r := range rows {
			line := strings.TrimSpace(r.Line.String())
			if r.ID == "" {
				seen[line]++
			} else if !strings.Contains(r.ID, ".") && len(seen) > 0 {
				t.Errorf("%s stands in a table", r.ID)
			}
		}
		for heading, n := range seen {
			if n != 1 {
				t.Errorf("%d headings %s", n, heading)
			}
		}
		if seen["[tui]"] == 0 {
			t.Error("no heading [tui]")
		}
	})

	t.Run("a filtered list has whole names and no headings, and is searched by what a setting does", func(t *testing.T) {
		list := lists.List{}
		list.Search()
		list.Filter.Set("wheel scrolls")
		rows := list.Through(All(c.Settings(true), true))
		if len(rows) != 1 || !strings.HasPrefix(row(t, rows, "tui.mouse.wheel"), "tui.mouse.wheel true") {
			t.Errorf("%d rows: %v", len(rows), rows)
		}
	})
}

// said are the rows of one setting, as lines.
func said(rows []lists.Row) string {
	var out []string
	for _, r := range rows {
		out = append(out, strings.TrimRight(r.Line.String(), " "))
	}
	return strings.Join(out, "\n")
}

func TestOneSetting(t *testing.T) {
	t.Parallel()
	c := resolved(t, "web_search = \"cached\"\n")
	get := func(name string) config.Setting {
		s, ok := c.Get(name)
		if !ok {
			t.Fatal(name)
		}
		return s
	}

	t.Run("words are chosen, and what stands in the file can be taken out", func(t *testing.T) {
		want := `value     cached
from      config.toml
default   "live"
takes     "live", "cached" or "disabled"
does      live: the provider's search and web_fetch; cached:
          the provider's own index alone; disabled: neither
counts    for bots that are made after it; ◆ it confines them

live
cached                     now
disabled
take it out of config.toml then "live"`
		if got := said(One(get("web_search"), 62)); got != want {
			t.Errorf("it is\n%s", got)
		}
	})

	t.Run("a text is written", func(t *testing.T) {
		rows := One(get("tui.editor"), 70)
		if last := rows[len(rows)-1]; last.ID != Write {
			t.Errorf("the last row is %q", last.ID)
		}
	})

	t.Run("a family is named before it can be set", func(t *testing.T) {
		k, err := config.Find("pricing.MODEL.input")
		if err != nil {
			t.Fatal(err)
		}
		rows := One(config.Setting{Key: k, Name: k.Name, From: config.FromDefault}, 70)
		for _, r := range rows {
			if r.ID != "" {
				t.Errorf("it can be set by %q", r.ID)
			}
		}
		if !strings.Contains(said(rows), "give it its name: /config pricing.MODEL.input VALUE") {
			t.Errorf("it is\n%s", said(rows))
		}
	})

	t.Run("what is edited is typed as it is set", func(t *testing.T) {
		for name, want := range map[string]string{"web_search": "cached", "tui.wheel_rows": "3", "skills.disabled": "[]", "effort": ""} {
			if got := Typed(get(name)); got != want {
				t.Errorf("%s: %q, not %q", name, got, want)
			}
		}
	})
}
