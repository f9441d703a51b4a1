package sonnytest

import (
	"os"
	"path/filepath"
	"strings"
)

// planted are settings of a repository's config by which git runs a program, %s, and the
// programs' own names beside their settings where the setting is no command.
var planted = []string{
	"filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.command", "diff.x.textconv", "merge.x.driver", "merge.verifySignatures=true",
	"diff.external", "core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.editor", "core.pager", "core.askPass", "core.alternateRefsCommand",
	"sequence.editor", "interactive.diffFilter", "credential.helper", "gpg.program", "gpg.ssh.program", "gpg.x509.program", "commit.gpgSign=true",
	"log.showSignature=true", "remote.origin.uploadpack", "remote.origin.receivepack", "remote.origin.promisor=true", "extensions.partialClone=origin",
	"core.repositoryFormatVersion=1", "alias.status", "alias.rev-parse", "trailer.x.command", "protocol.allow=always", "pager.status", "pager.diff",
}

// Plant has a repository name a program at every place where git would run one, as an
// agent could that may write its config, with attributes for all of its files, hooks, and
// the last commit's objects to be fetched. What of them runs writes a line to the file
// that is given back, which is not there until then. The repository has a file f that is
// to be looked into.
func (h *Home) Plant(dir string) (ran string) {
	h.t.Helper()
	ran = filepath.Join(h.root, "ran")
	program := filepath.Join(h.root, "planted")
	h.put(program, "#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat\n")
	h.put(filepath.Join(dir, "f"), "one\n")
	h.put(filepath.Join(dir, ".gitattributes"), "* filter=x diff=x merge=x\n")
	h.Git(dir, "add", "--all")
	h.Git(dir, "commit", "--quiet", "--message", "with attributes")
	for _, hook := range []string{"post-index-change", "reference-transaction", "post-checkout", "pre-commit", "post-merge", "prepare-commit-msg", "post-commit"} {
		link := filepath.Join(dir, ".git", "hooks", hook)
		h.folder(filepath.Dir(link))
		if err := os.Symlink(program, link); err != nil {
			h.t.Fatal(err)
		}
	}
	h.put(filepath.Join(h.root, "more"), "[filter \"x\"]\n\tclean = "+program+" included\n")
	config := "[include]\n\tpath = " + filepath.Join(h.root, "more") + "\n[remote \"origin\"]\n\turl = ext::" + program + " fetch\n"
	for _, setting := range planted {
		key, value, has := strings.Cut(setting, "=")
		if !has {
			value = program + " " + key
		}
		i, j := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
		section := "[" + key[:i]
		if j > i {
			section += " \"" + key[i+1:j] + "\""
		}
		config += section + "]\n\t" + key[j+1:] + " = " + value + "\n"
	}
	own, err := os.ReadFile(filepath.Join(dir, ".git", "config"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.put(filepath.Join(dir, ".git", "config"), string(own)+config)
	if err := os.Chmod(program, 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("two\n"), 0o600); err != nil { // as long as it was
		h.t.Fatal(err)
	}
	return ran
}
