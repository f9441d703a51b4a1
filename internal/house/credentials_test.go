package house

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// credentialForms are what keys that somebody could use look like. Examples and
// tests use values that no provider would give out.
var credentialForms = map[string]*regexp.Regexp{
	"an Anthropic key":          regexp.MustCompile(`sk-ant-[a-z]+[0-9]{2}-[A-Za-z0-9_-]{40,}`),
	"an OpenAI key":             regexp.MustCompile(`sk-(proj-|svcacct-|admin-)?[A-Za-z0-9_-]{40,}`),
	"an OpenRouter key":         regexp.MustCompile(`sk-or-v1-[0-9a-f]{40,}`),
	"an AWS key id":             regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`),
	"a Google key":              regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}\b`),
	"a GitHub token":            regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60,})\b`),
	"a signed token":            regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{40,}`),
	"the body of a private key": regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{60,}`),
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	t.Run("PO-88 the repository holds no credential", func(t *testing.T) {
		t.Parallel()
		top, err := topFolder()
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(top, path)
			if err != nil || !d.Type().IsRegular() {
				if err == nil && d.IsDir() && (d.Name() == ".git" || rel == "bin" || rel == filepath.Join("bench", "out")) {
					return fs.SkipDir
				}
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || bytes.IndexByte(text, 0) >= 0 {
				return err
			}
			read++
			for _, what := range credentialsIn(text) {
				t.Errorf("%s holds what looks like %s", rel, what)
			}
			return nil
		})
		if err != nil || read < 100 {
			t.Errorf("%d files were read: %v", read, err)
		}
	})
	t.Run("the check sees what it is for", func(t *testing.T) {
		t.Parallel()
		long := strings.Repeat("a1B2", 12)
		for what, text := range map[string]string{
			"an Anthropic key": "sk-ant-" + "api03-" + long, "an OpenAI key": "sk-" + "proj-" + long, "an OpenRouter key": "sk-or-" + "v1-" + strings.Repeat("0f", 32),
			"an AWS key id": "AK" + "IA" + "ABCDEFGH12345678", "a Google key": "AI" + "za" + strings.Repeat("x", 35), "a GitHub token": "ghp" + "_" + strings.Repeat("x", 36),
			"a signed token":            "eyJ" + long + ".eyJ" + long + "." + long,
			"the body of a private key": "-----BEGIN " + "PRIVATE KEY-----\n" + strings.Repeat("M", 64),
		} {
			if !strings.Contains(strings.Join(credentialsIn([]byte("x = '"+text+"'\n")), ","), what) {
				t.Errorf("%s is not seen", what)
			}
		}
		if found := credentialsIn([]byte("sk-ant-your-own, sk-12345678, AKIDEXAMPLE")); len(found) > 0 {
			t.Errorf("examples are taken for %q", found)
		}
	})
}

func credentialsIn(text []byte) (found []string) {
	for what, form := range credentialForms {
		if form.Match(text) {
			found = append(found, what)
		}
	}
	return found
}
