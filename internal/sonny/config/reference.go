package config

import (
	_ "embed"
	"strings"
)

//go:embed settings.md
var page string

// Reference is docs/SETTINGS.md: the page with the tables of Keys and ProjectKeys.
func Reference() string {
	return strings.NewReplacer("{{keys}}", keysTable(), "{{project}}", projectTable()).Replace(page)
}

func keysTable() string {
	var b strings.Builder
	b.WriteString("| Key | Default | It is | What it does |\n| --- | --- | --- | --- |\n")
	for _, k := range Keys {
		row(&b, "`"+k.Name+"`"+k.marks(), k.presetText(), cell(k.Must()), cell(k.Means))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (k *Key) marks() string {
	marks := ""
	if k.Confining() {
		marks += " ◆"
	}
	if k.Live {
		marks += " *live*"
	}
	return marks
}

// presetText is the default, or what holds without one.
func (k *Key) presetText() string {
	if k.Default == nil {
		return cell(k.Otherwise())
	}
	return "`" + k.Otherwise() + "`"
}

func projectTable() string {
	var b strings.Builder
	b.WriteString("| Key | Goes before | It is | What it does |\n| --- | --- | --- | --- |\n")
	for _, k := range ProjectKeys {
		before := ""
		if k.Sets != "" {
			before = "`" + k.Sets + "`"
		}
		row(&b, "`"+k.Name+"`", before, cell(k.Must()), cell(k.Means))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// cell is a text that is no markup in a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`, "<", `\<`, "~", `\~`).Replace(s)
}
