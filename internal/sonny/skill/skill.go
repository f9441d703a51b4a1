// Package skill is what bots are told beside the files of a folder: the skills that
// Sonny ships and how they are kept current (sonny.md 23), the roles that are built
// in (24), the message templates (10.6), and the composition of a lead's
// instructions (22).
//
// Reading and listing is safe for concurrent use; so are changes, across programs
// too.
package skill

import (
	"embed"
	"strings"

	"agent/protocol"
)

// MaxFile bounds a skill's file, in bytes.
const MaxFile = 256 << 10

const (
	codeBusy protocol.Code = "skills_busy"
	codeLeft protocol.Code = "skill_left"
)

//go:embed shipped/*.md
var shippedFiles embed.FS

// files are a skill's, by their slashed path in its folder.
type files map[string]string

// set is the files of each skill.
type set map[string]files

// shipped is what this build of Sonny ships: each NAME.md is the SKILL.md of NAME.
func shipped() set {
	list, err := shippedFiles.ReadDir("shipped")
	if err != nil {
		panic("skill: what was built in cannot be read: " + err.Error())
	}
	all := set{}
	for _, e := range list {
		text, err := shippedFiles.ReadFile("shipped/" + e.Name())
		if err != nil {
			panic("skill: what was built in cannot be read: " + err.Error())
		}
		all[strings.TrimSuffix(e.Name(), ".md")] = files{"SKILL.md": string(text)}
	}
	return all
}

// PlainName reports whether a skill's name is one that the document asks for: 1 to
// 64 of a-z 0-9 -. Others load too, and doctor warns of them.
func PlainName(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}
