package config

import "testing"

func mustParse(t *testing.T, text string) *document {
	t.Helper()
	d, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return d
}

func TestASettingIsSetInPlace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, key, value, want string }{
		{"an empty file gets a line", "", "model", `"a/b"`, "model = \"a/b\"\n"},
		{"an empty file gets a table", "", "tui.theme", `"light"`, "[tui]\ntheme = \"light\"\n"},
		{"a value is replaced between its blanks and its comment", "[tui]\n theme  =  'dark' # mine\n", "tui.theme", `"light"`, "[tui]\n theme  =  \"light\" # mine\n"},
		{"a list of several lines is replaced whole", "a = 1\n[tools]\ndisabled = [\n 'x', # why\n]\n# end\n", "tools.disabled", `["y"]`, "a = 1\n[tools]\ndisabled = [\"y\"]\n# end\n"},
		{"a line joins its table behind the last one", "[tui]\n  ascii = true\n\n# about b\n[b]\nc = 1\n", "tui.title", "false", "[tui]\n  ascii = true\n  title = false\n\n# about b\n[b]\nc = 1\n"},
		{"a table without a line gets its first", "[tui] # screen\n[b]\n", "tui.title", "false", "[tui] # screen\ntitle = false\n[b]\n"},
		{"a dotted table gets a dotted line", "tui.theme = 'x'\n[b]\n", "tui.title", "false", "tui.theme = 'x'\ntui.title = false\n[b]\n"},
		{"a dotted table below a header", "[tui]\nmouse.click = true\n", "tui.mouse.wheel", "false", "[tui]\nmouse.click = true\nmouse.wheel = false\n"},
		{"a table below one that is there", "[tui]\ntitle = true\n", "tui.mouse.wheel", "false", "[tui]\ntitle = true\n\n[tui.mouse]\nwheel = false\n"},
		{"a top setting goes before the tables and their comment", "# file\n\n# about tui\n[tui]\n", "model", `"a/b"`, "# file\n\nmodel = \"a/b\"\n\n# about tui\n[tui]\n"},
		{"a top setting goes below the comment that begins the file", "# file\n[tui]\n", "model", `"a/b"`, "# file\nmodel = \"a/b\"\n\n[tui]\n"},
		{"a top setting goes behind the others", "row = 'auto'\n\n[tui]\n", "model", `"a/b"`, "row = 'auto'\nmodel = \"a/b\"\n\n[tui]\n"},
		{"an inline table takes another pair", "[mcp_servers.x]\nenv = { A = '1' } # e\n", "mcp_servers.x.env.B", `"2"`, "[mcp_servers.x]\nenv = { A = '1', B = \"2\" } # e\n"},
		{"an empty inline table takes its first", "[mcp_servers.x]\nenv = {}\n", "mcp_servers.x.env.B", `"2"`, "[mcp_servers.x]\nenv = { B = \"2\" }\n"},
		{"a pair of an inline table is replaced", "mcp_servers = { x = { command = 'a', args = [ 'b' ] } }\n", "mcp_servers.x.args", `[]`, "mcp_servers = { x = { command = 'a', args = [] } }\n"},
		{"a name in quotes", "[pricing.\"a/b\"]\ninput = 1\n", `pricing."a/b".output`, "2.5", "[pricing.\"a/b\"]\ninput = 1\noutput = 2.5\n"},
		{"lines that end in CR LF", "[tui]\r\nascii = true\r\n", "tui.title", "false", "[tui]\r\nascii = true\r\ntitle = false\r\n"},
		{"a last line without an end", "[tui]\nascii = true", "tui.title", "false", "[tui]\nascii = true\ntitle = false\n"},
		{"a text that holds what looks like a setting", "a = \"\"\"\ntheme = 'no'\n\"\"\"\n[tui]\ntheme = 'x'\n", "tui.theme", `"y"`, "a = \"\"\"\ntheme = 'no'\n\"\"\"\n[tui]\ntheme = \"y\"\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := mustParse(t, row.text).set(ParseKey(row.key), row.value); string(got) != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

func TestASettingIsTakenOut(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, key, want string }{
		{"its line goes", "# a\nmodel = 'x'\nrow = 'auto'\n", "model", "# a\nrow = 'auto'\n"},
		{"the comment behind it stays", "  model = 'x' # why\n", "model", "  # why\n"},
		{"the first of an inline table", "a = { b = 1, c = 2 }\n", "a.b", "a = { c = 2 }\n"},
		{"the last of an inline table", "a = { b = 1, c = 2 }\n", "a.c", "a = { b = 1 }\n"},
		{"the only one of an inline table", "a = { b = 1 }\n", "a.b", "a = {  }\n"},
		{"a whole table and those below it", "[x]\na = 1\n[x.y]\nb = 1 # c\n# d\n[z]\ne = 1\n", "x", "# c\n# d\n[z]\ne = 1\n"},
		{"a dotted table", "x.a = 1\nx.b = 2\ny = 3\n", "x", "y = 3\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got, there := mustParse(t, row.text).unset(ParseKey(row.key)); string(got) != row.want || !there {
				t.Errorf("%v\n%s\nwant\n%s", there, got, row.want)
			}
		})
	}
	if got, there := mustParse(t, "a = 1\n").unset([]string{"b"}); string(got) != "a = 1\n" || there {
		t.Errorf("what is not there: %v, %s", there, got)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a": "a", " a . b": "a.b", `a."b.c"`: `a."b.c"`, `a.'b'`: "a.b", `pricing."p/m".input`: `pricing."p/m".input`,
		"": "", "a=1": "", "a =": "", "a = 1 #": "", "[a]": "", "a..b": "", "a\nb": "", "a b": "",
	} {
		if got := KeyText(ParseKey(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
